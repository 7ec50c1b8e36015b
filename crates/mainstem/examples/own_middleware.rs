//! A middleware of one's own: code around each model call and tool call, of the root and of its
//! children. This one adds a rule to the instructions, repeats a tool that fails once, and refuses
//! to delete.
//!
//! `cargo run -p mainstem --example own_middleware`
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use std::sync::atomic::{AtomicU32, Ordering};

use mainstem::{
    model::ModelRequest,
    prelude::*,
    react::{AgentError, Answer, NextModel, NextTool, PendingCall},
    serde_json::{Value, json},
};

struct Careful;

#[async_trait]
impl Middleware for Careful {
    fn system_prompt(&self, cx: &RunContext) -> Option<String> {
        Some(format!("You are {}. Never delete anything.", cx.agent()))
    }

    async fn on_model_call(
        &self,
        cx: &RunContext,
        request: ModelRequest,
        next: NextModel<'_>,
    ) -> Result<Answer, AgentError> {
        let rule = request.system.as_deref().unwrap_or_default().lines().next().unwrap_or_default();
        println!("{} reads {} messages, and {rule:?}", cx.agent(), request.messages.len());
        next.run(cx, request).await
    }

    async fn on_tool_call(
        &self,
        cx: &RunContext,
        call: PendingCall,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, ToolError> {
        if &*call.name == "delete" {
            return Err(ToolError::new("nothing is deleted here; move it to the archive instead"));
        }
        match next.run(cx, call.clone()).await {
            Err(error) => {
                println!("{} fails: {error}; once more", call.name);
                next.run(cx, call).await
            }
            done => done,
        }
    }
}

/// A tool whose first call fails.
fn archive() -> impl Tool {
    let calls = AtomicU32::new(0);
    tool_fn("archive", "Moves a file to the archive", move |_cx, _: Value| {
        let is_first = calls.fetch_add(1, Ordering::Relaxed) == 0;
        async move { if is_first { Err(ToolError::new("the archive is busy")) } else { Ok("moved") } }
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), mainstem::Error> {
    let model = ScriptedModel::new().agent(
        "main",
        [
            Turn::new().call("delete", json!({ "file": "a.txt" })),
            Turn::new().call("archive", json!({ "file": "a.txt" })),
            Turn::new().text("a.txt is in the archive."),
        ],
    );
    let delete = tool_fn("delete", "Deletes a file", |_cx, _: Value| async { Ok::<_, ToolError>("gone") });
    let harness = Harness::builder("main", model)
        .with_tool(delete)
        .with_tool(archive())
        .with_middleware(Careful)
        .build()?;
    println!("{}", harness.call("Get rid of a.txt").await?.text());
    Ok(())
}
