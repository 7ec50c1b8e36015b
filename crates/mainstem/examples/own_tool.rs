//! A tool of one's own: a function whose argument type is its schema. It streams its progress, ends
//! when the call is cancelled, and its errors go to the model.
//!
//! `cargo run -p mainstem --example own_tool`
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use mainstem::{prelude::*, serde_json::json, tool::unless};

/// The model reads these comments.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Count {
    /// The texts in which to count words.
    texts: Vec<String>,
}

#[derive(serde::Serialize)]
struct Counted {
    words: usize,
    on_behalf_of: String,
}

async fn count(cx: ToolContext, Count { texts }: Count) -> Result<Json<Counted>, ToolError> {
    if texts.is_empty() {
        return Err(ToolError::new("texts is empty: name at least one"));
    }
    let mut words = 0;
    for text in texts {
        // Blocking work, such as reading a large file, goes to a thread of its own.
        let counting = cx.blocking(move |_stop| text.split_whitespace().count());
        let Some(found) = unless(cx.cancelled(), counting).await else {
            return Err(ToolError::new("stopped before all texts were counted"));
        };
        words += found;
        cx.progress(format!("{words} words so far\n")).await;
    }
    Ok(Json(Counted { words, on_behalf_of: cx.user().unwrap_or("all").to_owned() }))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), mainstem::Error> {
    // The first call does not fit the schema, the second one is refused by the tool: the model gets
    // both errors, and corrects itself.
    let model = ScriptedModel::new().agent(
        "main",
        [
            Turn::new().call("count", json!({ "texts": "one text" })),
            Turn::new().call("count", json!({ "texts": [] })),
            Turn::new().call("count", json!({ "texts": ["to be or", "not to be"] })),
            Turn::new().text("Six words."),
        ],
    );
    let tool = tool_fn("count", "Counts the words of texts", count);
    let harness = Harness::builder("main", model).with_tool(tool).build()?;
    let mut run = harness.stream_events(RunRequest::new("How many words?").with_user("ann"));
    while let Some(event) = run.next().await {
        match &event.kind {
            EventKind::ToolResultTextDelta { delta, .. } => println!("{}", delta.trim_end()),
            EventKind::TextBlockDelta { delta, .. } => println!("answer: {delta}"),
            _ => {}
        }
    }
    Ok(())
}
