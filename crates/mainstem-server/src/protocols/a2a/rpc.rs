//! `POST /a2a`: JSON-RPC.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use mainstem::schema::misread;
use mainstem_a2a::{
    Framing,
    sdk::{
        A2AError, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest,
        GetTaskPushNotificationConfigRequest, GetTaskRequest, JsonRpcId, JsonRpcRequest,
        ListTaskPushNotificationConfigsRequest, ListTasksRequest, SubscribeToTaskRequest, methods,
    },
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Call, card, lists, messages, push, refusal::Refusal, tasks};
use crate::body::JsonBody;

/// What an operation answers with.
pub(super) enum Answer {
    Json(Value),
    Stream(Response),
}

impl Answer {
    /// Returns the answer with this result.
    pub(super) fn json(result: impl serde::Serialize) -> Self {
        Self::Json(serde_json::to_value(result).unwrap_or_default())
    }
}

pub(super) async fn post(mut call: Call, JsonBody(request): JsonBody) -> Response {
    let id = request.get("id").cloned().and_then(|id| serde_json::from_value(id).ok());
    let id: JsonRpcId = id.unwrap_or(JsonRpcId::Null);
    call.framing = Framing::JsonRpc(id.clone());
    match dispatch(&call, request).await {
        Ok(Answer::Json(result)) => Json(call.framing.result(result)).into_response(),
        Ok(Answer::Stream(response)) => response,
        Err(refusal) => refusal.rpc(id),
    }
}

async fn dispatch(call: &Call, request: Value) -> Result<Answer, Refusal> {
    let request: JsonRpcRequest = serde_json::from_value(request)
        .map_err(|error| A2AError::invalid_request(format!("not a JSON-RPC request: {error}")))?;
    if request.jsonrpc != "2.0" {
        return Err(A2AError::invalid_request("`jsonrpc` has to be \"2.0\"").into());
    }
    call.check_version()?;
    let params = Params(request.params.unwrap_or_else(|| Value::Object(Default::default())));
    match &*request.method {
        methods::SEND_MESSAGE => messages::send(call, params.read()?).await,
        methods::SEND_STREAMING_MESSAGE => messages::stream(call, params.read()?).await,
        methods::GET_TASK => tasks::get(call, params.read::<GetTaskRequest>()?).await,
        methods::LIST_TASKS => lists::list(call, params.read::<ListTasksRequest>()?).await,
        methods::CANCEL_TASK => tasks::cancel(call, &params.read::<CancelTaskRequest>()?.id).await,
        methods::SUBSCRIBE_TO_TASK => {
            tasks::subscribe(call, &params.read::<SubscribeToTaskRequest>()?.id).await
        }
        methods::CREATE_PUSH_CONFIG => push::create(call, params.read()?).await,
        methods::GET_PUSH_CONFIG => {
            let GetTaskPushNotificationConfigRequest { task_id, id, .. } = params.read()?;
            push::get(call, &task_id, &id).await
        }
        methods::LIST_PUSH_CONFIGS => {
            push::list(call, &params.read::<ListTaskPushNotificationConfigsRequest>()?.task_id).await
        }
        methods::DELETE_PUSH_CONFIG => {
            let DeleteTaskPushNotificationConfigRequest { task_id, id, .. } = params.read()?;
            push::delete(call, &task_id, &id).await
        }
        methods::GET_EXTENDED_AGENT_CARD => card::extended(call, params.tenant()),
        other => Err(A2AError::method_not_found(other).into()),
    }
}

/// The parameters of a request.
struct Params(Value);

impl Params {
    fn read<T: DeserializeOwned>(self) -> Result<T, Refusal> {
        serde_path_to_error::deserialize(self.0).map_err(|error| {
            let (path, error) = (error.path().to_string(), error.into_inner());
            let why = misread(&error.to_string(), "key");
            Refusal::invalid(format!("the parameters do not fit, at {path:?}: {why}"))
        })
    }

    fn tenant(&self) -> Option<&str> {
        self.0["tenant"].as_str()
    }
}
