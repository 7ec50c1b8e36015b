//! One tool of a server.

use std::sync::Weak;

use async_trait::async_trait;
use mainstem_tool::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec};
use rmcp::model::{CallToolRequestParams, ServerResult, Tool as Listed};
use serde_json::Value;
use tokio::time::sleep;

use crate::{
    call::{Call, Next},
    client::Shared,
    content, name,
};

/// A tool as its server listed it.
pub(crate) struct RemoteTool {
    /// Weak: a caller of the tool holds the server.
    server: Weak<Shared>,
    /// Its name there.
    name: String,
    spec: ToolSpec,
    is_read_only: bool,
}

impl RemoteTool {
    pub(crate) fn new(server: &str, shared: Weak<Shared>, listed: Listed, is_trusted: bool) -> Self {
        let name = listed.name.into_owned();
        let title = listed.title.or_else(|| listed.annotations.as_ref()?.title.clone());
        let description = listed.description.map(String::from).or(title).unwrap_or_default();
        let parameters = Value::Object((*listed.input_schema).clone());
        let hint = listed.annotations.and_then(|hints| hints.read_only_hint);
        let spec = ToolSpec::new(name::tool(server, &name), description, parameters);
        Self { server: shared, name, spec, is_read_only: is_trusted && hint == Some(true) }
    }
}

#[async_trait]
impl Tool for RemoteTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    async fn call(&self, cx: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolError> {
        let server = self.server.upgrade().ok_or_else(|| ToolError::new("its MCP server was closed"))?;
        let Value::Object(arguments) = arguments else {
            return Err(ToolError::new("the arguments of a tool of an MCP server are an object"));
        };
        let params = CallToolRequestParams::new(self.name.clone()).with_arguments(arguments);
        let call = tokio::select! {
            biased;
            () = cx.cancelled() => return Err(ToolError::new("interrupted before the call was sent to the MCP server")),
            call = server.begin(params) => call?,
        };
        await_answer(cx, &server, call).await
    }
}

/// Waits for the answer, and passes on the progress before it. The server runs whether or not the
/// run is polled, so this time counts.
async fn await_answer(cx: &ToolContext, server: &Shared, mut call: Call) -> Result<ToolOutput, ToolError> {
    let silence = server.server.timeout;
    let mut timeout = Box::pin(sleep(silence));
    loop {
        tokio::select! {
            biased;
            () = cx.cancelled() => {
                call.cancel("the run was cancelled");
                return Err(ToolError::new("interrupted; the call was cancelled at the MCP server"));
            }
            next = call.next() => match next {
                Next::Progress(line) => {
                    cx.progress(line).await;
                    timeout.set(sleep(silence));
                }
                Next::Answer(answer) => return match *answer {
                    Ok(ServerResult::CallToolResult(result)) => Ok(content::output(result)),
                    Ok(_) => Err(ToolError::new(UNSUPPORTED)),
                    Err(error) => Err(server.failed(error, &call.calls).await),
                },
            },
            () = &mut timeout => {
                call.cancel("no answer in time");
                return Err(ToolError::new(format!(
                    "the MCP server {:?} did not answer for {} s, so the call was cancelled",
                    server.name,
                    silence.as_secs(),
                )));
            }
        }
    }
}

const UNSUPPORTED: &str =
    "the MCP server wants input for this call, or makes a task of it, which is not supported here";
