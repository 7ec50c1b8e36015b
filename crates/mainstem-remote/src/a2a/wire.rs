//! The operations of the protocol, over either binding.

use mainstem_a2a::{
    extension::{Metadata, URI},
    sdk::{
        JsonRpcError, Message, SVC_PARAM_EXTENSIONS, SVC_PARAM_VERSION, SendMessageConfiguration,
        SendMessageRequest, SendMessageResponse, StreamResponse, Task, VERSION, error_code, methods,
    },
};
use mainstem_sse::SseEvent;
use reqwest::{
    Method, Response, Url,
    header::{ACCEPT, CONTENT_TYPE},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::card::{Binding, Interface};
use crate::{
    RemoteError,
    http::{Connection, Frames, INTERVAL, RETRIES, Repeat},
};

/// The most tasks of a context, and messages of a task, in a list.
const MAX_LISTED: u32 = 100;

/// What a streaming operation is answered with.
pub(super) enum Streamed {
    Frames(Frames),
    /// A server may answer in one piece.
    Whole(Box<StreamResponse>),
}

/// A header of a request.
type Header = (&'static str, String);

/// A server's interface.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    connection: Connection,
    interface: Interface,
    /// Of each message.
    metadata: Metadata,
}

impl Wire {
    pub(super) fn new(connection: Connection, interface: Interface, metadata: Metadata) -> Self {
        Self { connection, interface, metadata }
    }

    /// Returns `true` if the server has our extension.
    pub(super) fn has_events(&self) -> bool {
        self.interface.has_events
    }

    pub(super) fn is_streaming(&self) -> bool {
        self.interface.is_streaming
    }

    /// Sends a message, and returns the stream of its task.
    pub(super) async fn stream(&self, message: Message, repeat: Repeat) -> Result<Streamed, RemoteError> {
        let params = self.params(message, None);
        let path = ["message:stream"];
        let response = self.post(methods::SEND_STREAMING_MESSAGE, &path, params, repeat).await?;
        self.streamed(response).await
    }

    /// Sends a message, and returns its task without waiting for its end.
    pub(super) async fn send(
        &self,
        message: Message,
        repeat: Repeat,
    ) -> Result<SendMessageResponse, RemoteError> {
        let returning = SendMessageConfiguration {
            accepted_output_modes: None,
            task_push_notification_config: None,
            history_length: None,
            return_immediately: Some(true),
        };
        let params = self.params(message, Some(returning));
        let response = self.post(methods::SEND_MESSAGE, &["message:send"], params, repeat).await?;
        self.result(self.connection.json(response).await?)
    }

    pub(super) async fn get(&self, task: &str) -> Result<Task, RemoteError> {
        self.read(methods::GET_TASK, self.task(task), Method::GET, &self.place(&["tasks", task])).await
    }

    /// Returns the tasks of a context, with the beginnings of their histories.
    pub(super) async fn list(&self, context: &str) -> Result<Vec<Task>, RemoteError> {
        let mut params = json!({ "contextId": context, "pageSize": MAX_LISTED, "historyLength": MAX_LISTED });
        params["tenant"] = json!(self.interface.tenant);
        let (mut url, most) = (self.place(&["tasks"]), MAX_LISTED.to_string());
        let query = [("contextId", context), ("pageSize", &*most), ("historyLength", &*most)];
        url.query_pairs_mut().extend_pairs(query);
        let listed: Value = self.read(methods::LIST_TASKS, params, Method::GET, &url).await?;
        let tasks = listed["tasks"].as_array().into_iter().flatten();
        Ok(tasks.filter_map(|task| serde_json::from_value(task.clone()).ok()).collect())
    }

    pub(super) async fn cancel(&self, task: &str) -> Result<Task, RemoteError> {
        let url = self.place(&["tasks", &format!("{task}:cancel")]);
        self.read(methods::CANCEL_TASK, self.task(task), Method::POST, &url).await
    }

    /// Returns the result of an operation that has its effect once: it is requested again if the
    /// response is cut. HTTP+JSON has its own method and address.
    async fn read<T: DeserializeOwned>(
        &self,
        operation: &str,
        params: Value,
        method: Method,
        url: &Url,
    ) -> Result<T, RemoteError> {
        let mut attempt = 0;
        loop {
            let response = match self.interface.binding {
                Binding::JsonRpc => self.rpc(operation, params.clone(), Repeat::Safe).await?,
                Binding::HttpJson => {
                    let body = Some(&params).filter(|_| method == Method::POST);
                    self.send_to(method.clone(), url, body, &[], Repeat::Safe).await?
                }
            };
            match self.connection.json(response).await {
                Err(RemoteError::Unreachable { .. }) if attempt < RETRIES => attempt += 1,
                json => return self.result(json?),
            }
            sleep(INTERVAL).await;
        }
    }

    /// Returns the stream of a task, which begins with its state.
    pub(super) async fn subscribe(&self, task: &str) -> Result<Streamed, RemoteError> {
        self.subscribe_with(task, &[]).await
    }

    /// Returns the stream of a task behind an event, from a server with our extension.
    pub(super) async fn subscribe_after(&self, task: &str, event: u64) -> Result<Streamed, RemoteError> {
        self.subscribe_with(task, &[("last-event-id", event.to_string())]).await
    }

    async fn subscribe_with(&self, task: &str, headers: &[Header]) -> Result<Streamed, RemoteError> {
        let path = ["tasks", &format!("{task}:subscribe")];
        let (method, params) = match self.interface.binding {
            Binding::JsonRpc => (Method::POST, Some(call(methods::SUBSCRIBE_TO_TASK, self.task(task)))),
            Binding::HttpJson => (Method::GET, None),
        };
        let response =
            self.send_to(method, &self.place(&path), params.as_ref(), headers, Repeat::Safe).await?;
        self.streamed(response).await
    }

    /// Reads a frame of a stream.
    pub(super) fn frame(&self, frame: &SseEvent) -> Result<StreamResponse, RemoteError> {
        let json = serde_json::from_str(&frame.data);
        self.result(json.map_err(|error| self.connection.invalid(&format!("a frame is not JSON: {error}")))?)
    }

    /// Checks that an update is of this task: what it says of another may be another caller's.
    ///
    /// # Errors
    /// It is not.
    pub(super) fn check_task(&self, update: &StreamResponse, task: Option<&str>) -> Result<(), RemoteError> {
        let of = match update {
            StreamResponse::Task(task) => Some(&task.id),
            StreamResponse::Message(message) => message.task_id.as_ref(),
            StreamResponse::StatusUpdate(update) => Some(&update.task_id),
            StreamResponse::ArtifactUpdate(update) => Some(&update.task_id),
        };
        match (of.filter(|of| !of.is_empty()), task) {
            (Some(of), Some(task)) if of != task => {
                Err(self.connection.invalid("an update is of another task than the one that was begun"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    fn params(&self, message: Message, configuration: Option<SendMessageConfiguration>) -> Value {
        let tenant = self.interface.tenant.clone();
        let metadata = Some(self.metadata.clone()).filter(|metadata| !metadata.is_empty());
        json!(SendMessageRequest { message, configuration, metadata, tenant })
    }

    fn task(&self, id: &str) -> Value {
        let mut params = json!({ "id": id });
        if let Some(tenant) = &self.interface.tenant {
            params["tenant"] = json!(tenant);
        }
        params
    }

    async fn post(
        &self,
        method: &str,
        path: &[&str],
        params: Value,
        repeat: Repeat,
    ) -> Result<Response, RemoteError> {
        match self.interface.binding {
            Binding::JsonRpc => self.rpc(method, params, repeat).await,
            Binding::HttpJson => self.request(Method::POST, path, Some(params), repeat).await,
        }
    }

    async fn rpc(&self, method: &str, params: Value, repeat: Repeat) -> Result<Response, RemoteError> {
        let body = call(method, params);
        self.send_to(Method::POST, &self.interface.url, Some(&body), &[], repeat).await
    }

    async fn request(
        &self,
        method: Method,
        path: &[&str],
        body: Option<Value>,
        repeat: Repeat,
    ) -> Result<Response, RemoteError> {
        self.send_to(method, &self.place(path), body.as_ref(), &[], repeat).await
    }

    /// Returns the address of an operation.
    fn place(&self, path: &[&str]) -> Url {
        let mut url = self.interface.url.clone();
        if self.interface.binding == Binding::HttpJson
            && let Ok(mut segments) = url.path_segments_mut()
        {
            segments.pop_if_empty().extend(self.interface.tenant.as_deref()).extend(path);
        }
        url
    }

    async fn send_to(
        &self,
        method: Method,
        url: &Url,
        body: Option<&Value>,
        more: &[Header],
        repeat: Repeat,
    ) -> Result<Response, RemoteError> {
        let mut headers = vec![
            (SVC_PARAM_VERSION, VERSION.to_owned()),
            (ACCEPT.as_str(), "text/event-stream, application/json, application/a2a+json".to_owned()),
        ];
        headers.extend(self.has_events().then(|| (SVC_PARAM_EXTENSIONS, URI.to_owned())));
        headers.extend_from_slice(more);
        self.connection.send(method, url, body, &headers, repeat).await
    }

    async fn streamed(&self, response: Response) -> Result<Streamed, RemoteError> {
        let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if media_type.is_some_and(|media_type| media_type.starts_with("text/event-stream")) {
            return Ok(Streamed::Frames(Connection::frames_of(response)));
        }
        let whole = self.result(self.connection.json(response).await?)?;
        Ok(Streamed::Whole(Box::new(whole)))
    }

    /// Takes a result out of its response.
    fn result<T: DeserializeOwned>(&self, mut json: Value) -> Result<T, RemoteError> {
        if self.interface.binding == Binding::JsonRpc {
            if let Some(error) = json.get_mut("error").map(Value::take).filter(|error| !error.is_null()) {
                return Err(self.refused(error));
            }
            json = json["result"].take();
        }
        serde_json::from_value(json)
            .map_err(|error| self.connection.invalid(&format!("not the expected response: {error}")))
    }

    fn refused(&self, error: Value) -> RemoteError {
        let Ok(JsonRpcError { code, message, .. }) = serde_json::from_value(error) else {
            return self.connection.invalid("an error is not one of JSON-RPC");
        };
        match code {
            error_code::TASK_NOT_FOUND => self.connection.refusal(&format!("the task is unknown: {message}")),
            _ => self.connection.refusal(&format!("{message} ({code})")),
        }
    }
}

/// Returns a JSON-RPC request.
fn call(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}
