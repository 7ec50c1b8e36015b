//! Which answers count, the messages about others, and the requests.

use std::sync::{Mutex, PoisonError};

use insta::assert_snapshot;
use mainstem_event::{AgentEvent, EventSink, LogOptions, Origin, SessionLog};
use mainstem_model::{Model, ModelStream, ScriptedModel, scripted::Turn};
use mainstem_testing::{CountedIds, FakeClock, laws, render};
use serde_json::json;

use super::*;
use crate::{Agent, AgentBuilder, RunOutcome};

/// A model that records its requests.
#[derive(Clone)]
struct RecordingModel {
    model: ScriptedModel,
    holds: bool,
    requests: Arc<Mutex<Vec<ModelRequest>>>,
}

impl RecordingModel {
    fn new(turns: impl IntoIterator<Item = Turn>, holds: bool) -> Self {
        Self { model: ScriptedModel::new().agent("main", turns), holds, requests: Arc::default() }
    }

    fn requests(&self) -> Vec<ModelRequest> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Model for RecordingModel {
    fn name(&self) -> &str {
        "asked"
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
        self.model.stream(request)
    }

    fn can_enforce_schema(&self, _: &ModelRequest) -> bool {
        self.holds
    }
}

fn schema() -> OutputSchema {
    let score = json!({"type": "integer", "minimum": 1});
    let schema = json!({"type": "object", "properties": {"score": score}, "required": ["score"]});
    OutputSchema::new(schema).unwrap()
}

fn agent(model: &RecordingModel) -> AgentBuilder {
    Agent::builder("main", model.clone()).with_middleware(StructuredOutput::new(schema()))
}

async fn play(agent: AgentBuilder) -> (RunOutcome, String) {
    let log = SessionLog::with("s".parse().unwrap(), Arc::new(FakeClock::default()), LogOptions::default());
    let origin = Origin {
        reply_id: Some("r".parse().unwrap()),
        ..Origin::session("s".parse().unwrap(), Some("run".parse().unwrap()))
    };
    let cx = RunContext::root("main", EventSink::root(log.clone(), origin));
    let cx = cx.with_ids(Arc::new(CountedIds::default())).build();
    let outcome = agent.build().unwrap().run(cx, Vec::new(), vec![Arc::new(Message::user("go"))]).await;
    let mut cursor = log.subscribe_from(1);
    let events: Vec<AgentEvent> = std::iter::from_fn(|| cursor.try_next()).collect();
    laws(&events).unwrap_or_else(|broken| panic!("{broken}\n{}", render(&events)));
    (outcome, render(&events))
}

fn said(outcome: &RunOutcome) -> String {
    match (&outcome.answer, &outcome.error) {
        (Some(answer), _) => answer.text(),
        (_, Some(error)) => format!("error: {error}"),
        _ => "nothing".to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn what_counts_as_an_answer() {
    async fn check<const N: usize>(turns: [Turn; N], holds: bool, expected: &str) {
        let model = RecordingModel::new(turns, holds);
        let (outcome, _) = play(agent(&model)).await;
        assert_eq!(said(&outcome), expected);
    }
    let text = |text: &str| [Turn::new().text(text)];
    let given = |arguments| Turn::new().call("final_answer", arguments);
    for holds in [false, true] {
        check(text(r#"{"score":3}"#), holds, r#"{"score":3}"#).await;
        check(text(" {\"score\": 3}\n"), holds, " {\"score\": 3}\n").await;
        check(text("Here you are:\n```json\n{\"score\": 3}\n```"), holds, r#"{"score":3}"#).await;
        check(text("The answer is {\"score\": 3}."), holds, r#"{"score":3}"#).await;
        let second = [Turn::new().text("three"), Turn::new().text(r#"{"score":4}"#)];
        check(second, holds, r#"{"score":4}"#).await;
        let twice = [Turn::new().text(r#"{"score":0}"#), Turn::new().text("sorry, 0")];
        let error = "error: the answer does not fit the output schema:\n- the answer is no JSON: expected value at line 1 column 1\n\
                     the answer was: sorry, 0";
        check(twice, holds, error).await;
    }
    check([given(json!({"score": 5}))], false, r#"{"score":5}"#).await;
    check([given(json!({"score": 0})), given(json!({"score": 1}))], false, r#"{"score":1}"#).await;
    let error = "error: the answer does not fit the output schema:\n- at /score: must be at least 1, got 0\n\
                 the answer was: {\"score\":0}";
    check([given(json!({"score": "a"})), given(json!({"score": 0}))], false, error).await;
}

#[tokio::test(start_paused = true)]
async fn a_vendor_that_holds_a_schema_is_asked_to() {
    let model = RecordingModel::new([Turn::new().text(r#"{"score":3}"#)], true);
    play(agent(&model)).await;
    let [request] = &model.requests()[..] else { panic!("one call") };
    let Some(ResponseFormat::JsonSchema { schema: asked, .. }) = &request.options.response_format else {
        panic!("no format: {request:?}")
    };
    assert_eq!(asked, schema().asked());
    assert!(request.tools.is_empty() && request.system.is_none());
}

#[tokio::test(start_paused = true)]
async fn others_get_a_tool() {
    let wrong = Turn::new().call("final_answer", json!({}));
    let model = RecordingModel::new([wrong, Turn::new().call("final_answer", json!({"score": 1}))], false);
    let (_, timeline) = play(agent(&model).with_system_prompt("Judge.")).await;
    let [first, second] = &model.requests()[..] else { panic!("two calls") };
    assert_eq!(
        first.system.as_deref(),
        Some("Judge.\n\nGive your answer by calling `final_answer`, not as text.")
    );
    assert_eq!(&first.tools[0].parameters, schema().asked());
    assert_eq!((&first.tool_choice, &first.options.response_format), (&ToolChoice::Auto, &None));
    assert_eq!(second.tool_choice, ToolChoice::Tool("final_answer".to_owned()));
    assert_snapshot!(timeline);
}

#[tokio::test(start_paused = true)]
async fn a_tool_of_that_name_stays_what_it_is() {
    let own = mainstem_tool::tool_fn("final_answer", "", |_, _: serde_json::Map<String, Value>| async {
        Ok::<_, mainstem_tool::ToolError>("mine")
    });
    let turns =
        [Turn::new().call("final_answer", json!({})), Turn::new().call("final_answer_", json!({"score": 2}))];
    let (outcome, timeline) = play(agent(&RecordingModel::new(turns, false)).with_tool(own)).await;
    assert_eq!(said(&outcome), r#"{"score":2}"#);
    assert!(timeline.contains("mine"), "{timeline}");
}

#[tokio::test(start_paused = true)]
async fn prose_is_asked_for_again() {
    let model = RecordingModel::new([Turn::new().text("Three."), Turn::new().text(r#"{"score":3}"#)], true);
    let (_, timeline) = play(agent(&model)).await;
    assert_snapshot!(timeline);
    let [_, second] = &model.requests()[..] else { panic!("two calls") };
    let said: Vec<_> = second.messages.iter().map(|message| message.text()).collect();
    assert_eq!(said[..2], ["go", "Three."]);
    assert!(said[2].contains("the answer is no JSON") && said.len() == 3, "{said:?}");
}

#[test]
fn the_json_in_a_text() {
    let check = |text: &str, expected: &str| assert_eq!(json_in(text), expected);
    check(" [1] ", "[1]");
    check("\"a\"", "\"a\"");
    check("```json\n{\"a\": [1]}\n```", "{\"a\": [1]}");
    check("so: {1} and {2}.", "{1} and {2}");
    check("} {", "} {");
    check("7", "7");
}
