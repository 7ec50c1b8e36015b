//! One request of streamable HTTP, without a session: each has all that it needs.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, stream::BoxStream};
use http::{HeaderValue, Request, Response, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
};
use tokio_util::sync::CancellationToken;

use super::{AgentServer, Handler};

/// The body of a response.
pub type Body = BoxStream<'static, Result<Bytes, Infallible>>;

impl AgentServer {
    /// Answers one POST request of MCP's streamable HTTP, until the token is cancelled. Dropping
    /// the body of the response cancels the call.
    ///
    /// Requests have no MCP session, so a client can't be asked for approvals: they are denied. The
    /// caller has checked host, origin and token, and has read the body.
    pub async fn handle(&self, request: Request<Bytes>, stop: CancellationToken) -> Response<Body> {
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_max_request_body_bytes(request.body().len().max(1))
            .with_cancellation_token(stop)
            .disable_allowed_hosts()
            .disable_allowed_origins();
        let server = self.clone();
        let handler = move || Ok(Handler { server: server.clone() });
        let sessions = Arc::new(NeverSessionManager::default());
        let service = StreamableHttpService::new(handler, sessions, config);
        let mut response = service.handle(request.map(Full::new)).await;
        if response.status().is_client_error() {
            // The SDK writes some of its refusals as texts without a type.
            let text = HeaderValue::from_static("text/plain; charset=utf-8");
            response.headers_mut().entry(CONTENT_TYPE).or_insert(text);
        }
        response.map(|body| body.into_data_stream().boxed())
    }
}
