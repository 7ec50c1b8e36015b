//! Refusals in the forms of both bindings.

use axum::{
    extract::Request,
    http::{Extensions, HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use mainstem_a2a::{
    answer::NoAnswer,
    error,
    sdk::{A2AError, JsonRpcId, error_code},
};
use mainstem_api::Code;
use serde_json::Value;

use crate::{problem::Problem, relay};

/// Why a request is refused.
#[derive(Debug)]
pub(super) struct Refusal(Box<Inner>);

#[derive(Debug)]
struct Inner {
    error: A2AError,
    /// The status, if it is not that of the error's code.
    status: Option<StatusCode>,
    /// The headers that the status requires.
    headers: HeaderMap,
    /// What other nodes are told.
    marks: Extensions,
}

impl Refusal {
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        A2AError::invalid_params(message).into()
    }

    pub(super) fn unsupported(message: impl Into<String>) -> Self {
        A2AError::unsupported_operation(message).into()
    }

    /// Returns the response of a JSON-RPC request.
    pub(super) fn rpc(self, id: JsonRpcId) -> Response {
        // Errors of the protocol are results of the transport.
        let status = self.0.status.unwrap_or(StatusCode::OK);
        let body = error::rpc(id, &self.0.error);
        self.response(status, "application/json", &body)
    }

    fn rest(self) -> Response {
        let own = StatusCode::from_u16(self.0.error.http_status_code()).ok();
        let status = self.0.status.or(own).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut body = error::rest(&self.0.error);
        body["error"]["code"] = status.as_u16().into();
        self.response(status, super::rest::JSON, &body)
    }

    fn response(self, status: StatusCode, media_type: &'static str, body: &Value) -> Response {
        let mut response = (status, self.0.headers, body.to_string()).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        response.extensions_mut().extend(self.0.marks);
        response
    }
}

impl From<A2AError> for Refusal {
    fn from(error: A2AError) -> Self {
        Self(Box::new(Inner { error, status: None, headers: HeaderMap::new(), marks: Extensions::new() }))
    }
}

impl From<NoAnswer> for Refusal {
    fn from(error: NoAnswer) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        let body = problem.body();
        let code = match body.code {
            Code::NotFound => error_code::TASK_NOT_FOUND,
            Code::NotAsked | Code::NotSteerable | Code::OnlySpawned => error_code::UNSUPPORTED_OPERATION,
            Code::BadJson => error_code::PARSE_ERROR,
            Code::NotJson | Code::EncodedBody | Code::BodyUnreadable | Code::MethodNotAllowed => {
                error_code::INVALID_REQUEST
            }
            Code::BadBody
            | Code::BadId
            | Code::BadPath
            | Code::BadQuery
            | Code::IdempotencyKeyReused
            | Code::SchemaLimit
            | Code::UnknownAgent
            | Code::UnknownModel => error_code::INVALID_PARAMS,
            _ => error_code::INTERNAL_ERROR,
        };
        let error = A2AError::new(code, body.detail.clone());
        // Statuses about the connection stay, with what proxies and clients read of them, and those
        // that the protocol has no error for.
        let is_kept = code == error_code::INTERNAL_ERROR || matches!(body.status, 408 | 413 | 415 | 429);
        let status = StatusCode::from_u16(body.status).ok().filter(|_| is_kept);
        let marks = relay::marks(&problem);
        let headers = problem.into_response().headers().clone();
        let kept = [header::RETRY_AFTER, header::WWW_AUTHENTICATE];
        let headers = headers.into_iter().filter_map(|(name, value)| Some((name?, value)));
        let headers = headers.filter(|(name, _)| kept.contains(name)).collect();
        Self(Box::new(Inner { error, status, headers, marks }))
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        self.rest()
    }
}

/// Answers in the form of JSON-RPC what an extractor has refused.
pub(super) async fn as_rpc(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    refused(&response).map_or(response, |refusal| refusal.rpc(JsonRpcId::Null))
}

/// Answers in the form of HTTP+JSON what an extractor has refused.
pub(super) async fn as_rest(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    refused(&response).map_or(response, Refusal::rest)
}

fn refused(response: &Response) -> Option<Refusal> {
    response.extensions().get::<Problem>().cloned().map(Refusal::from)
}
