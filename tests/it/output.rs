//! Answers of a schema: of the root, by type or by schema, and of children, by their spec.

use mainstem::{message::Usage, model::scripted::Turn, policy::Budget, prelude::*, react::AgentError};
use mainstem_testing::{laws, render, timeline};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Spawns, harness};

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Verdict {
    /// From 1 to 5.
    score: u8,
    why: Option<String>,
}

fn answer(arguments: Value) -> Turn {
    Turn::new().call("final_answer", arguments)
}

#[tokio::test(start_paused = true)]
async fn a_reply_is_a_value() {
    let model = ScriptedModel::new().agent("main", [answer(json!({"score": 4})), Turn::new().text("And?")]);
    let harness = harness(model).build().unwrap();
    let verdict: Verdict = harness.call_typed("How good?").await.unwrap();
    assert_eq!(verdict, Verdict { score: 4, why: None });
    // Only the run that requests it.
    assert_eq!(harness.call("How good?").await.unwrap().text(), "And?");
}

#[tokio::test(start_paused = true)]
async fn so_is_a_list() {
    let model = ScriptedModel::new().agent("main", [answer(json!({"value": ["a", "b"]}))]);
    let list: Vec<String> = harness(model).build().unwrap().call_typed("Which?").await.unwrap();
    assert_eq!(list, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_never_fits_is_an_error_that_shows_it() {
    let twice = [answer(json!({"score": 400})), Turn::new().text("It is rather good.")];
    let harness = harness(ScriptedModel::new().agent("main", twice)).build().unwrap();
    let error = harness.call_typed::<Verdict>("How good?").await.unwrap_err();
    assert!(matches!(&error, RunError::Agent(AgentError::Output { .. })), "{error:?}");
    assert!(error.to_string().ends_with("the answer was: It is rather good."), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_value_that_the_type_does_not_hold_is_an_error_with_its_place() {
    let schema = OutputSchema::new(json!({"type": "object"})).unwrap();
    let model = ScriptedModel::new().agent("main", [answer(json!({"score": "high"}))]);
    let harness = harness(model).build().unwrap();
    let run = harness.stream_events(RunRequest::new("How good?").with_output(schema));
    let error = run.reply_as::<Verdict>().await.unwrap_err().to_string();
    assert!(
        error.ends_with(
            "Verdict in the reply: score: invalid type: string \"high\", expected u8 at line 1 column 15"
        ),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_child_answers_in_the_form_of_its_spec() {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("judge", "Judge."), Turn::new().text("It is a four.")])
        .agent("judge", [Turn::new().text("Quite good."), answer(json!({"score": 4}))]);
    let schema =
        json!({"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]});
    let spec = AgentSpec::new("judge", "Judges").with_output_schema(schema);
    let harness = harness(model).with_subagent(spec).build().unwrap();
    insta::assert_snapshot!(timeline(harness.stream_events("go")).await);
}

#[tokio::test(start_paused = true)]
async fn each_call_counts_in_the_budget() {
    let asks = async |tokens| {
        let mut used = Usage::default();
        used.output_tokens = 50_000;
        let turns = [answer(json!({})).usage(used), answer(json!({"score": 1}))];
        let harness = harness(ScriptedModel::new().agent("main", turns)).build().unwrap();
        let options = RunOptions::new().with_output(OutputSchema::of::<Verdict>().unwrap());
        let run = harness.stream_events(
            RunRequest::new("go").with_options(options.with_budget(Budget::default().with_tokens(tokens))),
        );
        let events: Vec<_> = run.collect().await;
        laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
        let is_call = |event: &&AgentEvent| matches!(&event.kind, EventKind::ModelCallStart { model_name, .. } if &**model_name == "scripted");
        events.iter().filter(is_call).count()
    };
    assert_eq!(asks(100_000).await, 2);
    assert_eq!(asks(50_000).await, 1);
}
