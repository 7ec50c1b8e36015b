//! A model of one's own. A provider implements one function, from a request to a stream of deltas.
//! This one follows a rule; one that asks a service yields what the service sends, as it comes.
//!
//! `cargo run -p mainstem --example own_model`
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use mainstem::{
    futures_util::stream,
    message::{StopReason, Usage},
    model::{ErrorKind, ModelDelta, ModelError, ModelRequest, ModelStream},
    prelude::*,
    serde_json::json,
};

/// A model that lets the tool `add` add the numbers of a question, and reports the result.
struct Adder;

impl Model for Adder {
    fn name(&self) -> &str {
        "adder"
    }

    /// The request has the whole conversation; a model has none of its own.
    fn stream(&self, request: ModelRequest) -> ModelStream {
        let deltas = match request.messages.last() {
            Some(message) if message.role == Role::Tool => Ok(answer(&message.tool_text())),
            Some(message) => call(&message.text()),
            None => Err(ModelError::new(ErrorKind::InvalidRequest, "the conversation is empty")),
        };
        // A stream ends after its first error. `Retry` and other decorators act on its kind.
        match deltas {
            Ok(deltas) => Box::pin(stream::iter(deltas.into_iter().map(Ok))),
            Err(error) => Box::pin(stream::iter([Err(error)])),
        }
    }
}

/// Returns a call of the tool.
fn call(question: &str) -> Result<Vec<ModelDelta>, ModelError> {
    let numbers: Vec<i64> =
        question.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
    let [left, right] = numbers[..] else {
        return Err(ModelError::new(ErrorKind::InvalidRequest, "expected two numbers to add"));
    };
    Ok(vec![
        ModelDelta::CallStart { slot: 0, id: None, name: "add".to_owned() },
        ModelDelta::CallArguments { slot: 0, delta: json!({ "left": left, "right": right }).to_string() },
        ModelDelta::Stop(StopReason::ToolCalls),
    ])
}

/// Returns an answer in two pieces, and its tokens.
fn answer(sum: &str) -> Vec<ModelDelta> {
    vec![
        ModelDelta::Text("The sum is ".to_owned()),
        ModelDelta::Text(format!("{sum}.")),
        ModelDelta::Usage(Usage::new(12, 6)),
        ModelDelta::Stop(StopReason::Stop),
    ]
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    left: i64,
    right: i64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), mainstem::Error> {
    let add = tool_fn("add", "Adds two numbers", |_cx, Add { left, right }| async move {
        let sum = left.checked_add(right).ok_or_else(|| ToolError::new("the sum is too large"))?;
        Ok::<_, ToolError>(sum.to_string())
    });
    let harness = Harness::builder("main", Adder).with_tool(add).build()?;
    let mut run = harness.stream_events("What is 2 + 3?");
    while let Some(event) = run.next().await {
        println!("{event}");
    }
    Ok(())
}
