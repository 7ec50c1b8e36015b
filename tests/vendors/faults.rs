//! What can go wrong with a provider, on each vendor's API: the same events from every vendor,
//! nothing said twice, nothing lost silently.
//!
//! A [`ModelServer`] says an answer in the vendor's form; its bytes are then played back broken.

use std::{sync::Arc, time::Duration};

use mainstem::{
    event::fold::fold,
    message::{ContentBlock, StopReason, Usage},
    model::{Fallback, IdleTimeout, Model, ModelDelta, Retry, RetryPolicy, scripted::Turn},
    prelude::*,
};
use mainstem_testing::{
    CountedIds, FakeClock, ModelServer, laws,
    raw::{Server, Step, whole},
    render,
};
use serde_json::{Map, Value, json};

use crate::api::{Provider, vendors};

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Retries at once, twice; gives up on silence.
fn patient(model: Arc<dyn Model>) -> impl Model {
    let mut policy = RetryPolicy::default();
    (policy.attempts, policy.min_wait, policy.jitter) = (3, ms(1), false);
    Retry::with_policy(IdleTimeout::new(model, ms(400)), policy)
}

fn harness(model: impl Model) -> Harness {
    let tool = |_, _: Map<String, Value>| async { Ok::<_, ToolError>("42") };
    Harness::builder("main", model)
        .with_clock(FakeClock::default())
        .with_ids(CountedIds::default())
        .with_tool(tool_fn("look", "Looks", tool))
        .with_max_depth(0)
        .build()
        .unwrap()
}

pub(crate) async fn run(model: impl Model) -> Vec<AgentEvent> {
    let events: Vec<_> = harness(model).stream_events("go").collect().await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    events
}

/// Events as one reads them, without times, ids and whatever names the server.
fn shown(events: &[AgentEvent], host: &str) -> String {
    let text = render(events).replace(host, "SERVER");
    let lines = text.lines().filter_map(|line| line.trim().split_once(' ')).map(|(_, line)| line.trim());
    // Chat completions do not say that a call is complete before the answer is.
    let lines = lines.filter(|line| !line.contains("TOOL_CALL_END"));
    // Whose id a call has is the vendor's affair.
    let lines =
        lines.map(|line| match line.rfind(" (").filter(|_| line.contains(" TOOL_") && line.ends_with(')')) {
            Some(at) => &line[..at],
            None => line,
        });
    lines.collect::<Vec<_>>().join("\n")
}

/// Plays scripts to each vendor's provider; all must give the same events.
async fn check(
    scripts: impl AsyncFn(Provider) -> Vec<Vec<Step>>,
    wrap: impl Fn(Arc<dyn Model>) -> Arc<dyn Model>,
) -> String {
    let mut same: Option<(Provider, String)> = None;
    for vendor in vendors().await {
        let server = Server::start(scripts(vendor).await).await;
        let seen = shown(&run(wrap(vendor.model(&server.url()))).await, &server.host());
        let (first, expected) = same.get_or_insert_with(|| (vendor, seen.clone()));
        assert_eq!(comparable(&seen), comparable(expected), "{vendor:?} and {first:?}");
    }
    same.unwrap().1
}

/// Returns events without the tokens of an answer that was taken back: vendors differ in what they
/// report of it.
fn comparable(seen: &str) -> String {
    let is_taken_back = seen.contains("takes back");
    let counts = |line: &str| is_taken_back && line.contains(" AGENT_END ") && line.ends_with(" tok");
    let lines = seen.lines().map(|line| match counts(line) {
        true => line.trim_end_matches(" tok").trim_end_matches(|char: char| char != ' '),
        false => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn bare(model: Arc<dyn Model>) -> Arc<dyn Model> {
    model
}

fn wrapped(model: Arc<dyn Model>) -> Arc<dyn Model> {
    Arc::new(patient(model))
}

fn hello() -> Turn {
    Turn::new().text("Grüße ").text("an alle").usage(Usage::new(12, 7))
}

fn call() -> Turn {
    Turn::new().text("Ich sehe nach. ").call("look", json!({ "at": "the ünïcode" })).usage(Usage::new(12, 7))
}

#[tokio::test]
async fn refusals_that_pass_are_waited_for() {
    for (status, headers) in [
        ("429 Too Many Requests", "retry-after: 0\r\n"),
        ("429 Too Many Requests", ""),
        ("500 Internal Server Error", ""),
        ("503 Service Unavailable", ""),
        ("529 Overloaded", ""),
    ] {
        let refused = async |vendor: Provider| {
            let no = whole(
                status,
                &format!("content-type: application/json\r\n{headers}"),
                &vendor.refusal("Not now.").await,
            );
            vec![no.clone(), no, vendor.complete(vendor.frames(hello()).await)]
        };
        let seen = check(refused, wrapped).await;
        assert_eq!(seen.matches("MODEL_RETRY").count(), 2, "{seen}");
        assert!(seen.contains("Not now.") && seen.contains("AGENT_END success 19/19 tok"), "{seen}");
    }
}

#[tokio::test]
async fn refusals_that_stay_end_the_call() {
    for (status, kind) in [
        ("400 Bad Request", "invalid_request"),
        ("401 Unauthorized", "auth"),
        ("403 Forbidden", "auth"),
        ("404 Not Found", "not_found"),
        ("413 Payload Too Large", "context_overflow"),
    ] {
        for vendor in vendors().await {
            let no = whole(status, "content-type: application/json\r\n", &vendor.refusal("Never.").await);
            let server = Server::start(vec![no.clone(), no]).await;
            let seen = shown(&run(wrapped(vendor.model(&server.url()))).await, &server.host());
            assert!(!seen.contains("MODEL_RETRY") && seen.contains("Never."), "{vendor:?} {status}: {seen}");
            assert!(
                seen.contains(&format!("AGENT_END error 0/0 tok ({kind}")),
                "{vendor:?} {status}: {seen}"
            );
        }
    }
}

#[tokio::test]
async fn a_cut_before_the_first_byte_is_tried_again() {
    let script = async |vendor: Provider| {
        // Without an answer; with its head alone.
        vec![vec![], vendor.stream([]), vendor.complete(vendor.frames(hello()).await)]
    };
    let seen = check(script, wrapped).await;
    assert_eq!(seen.matches("MODEL_RETRY").count(), 2, "{seen}");
    assert!(seen.contains("Grüße an alle") && seen.contains("AGENT_END success"), "{seen}");
}

/// The conversation of a run, without the ids of messages and calls.
pub(crate) fn conversation(events: &[AgentEvent]) -> Vec<String> {
    let shown = |block: &ContentBlock| match block {
        ContentBlock::Text { text, .. } => text.clone(),
        ContentBlock::ToolCall(call) => format!("{}({})", call.name, call.arguments),
        ContentBlock::ToolResult(result) => format!("{}: {}", result.name, result.text()),
        other => format!("{other:?}"),
    };
    let of_root = fold(events).remove(0);
    let messages = of_root.messages().iter();
    messages.map(|message| message.content.iter().map(shown).collect::<Vec<_>>().join(" | ")).collect()
}

/// Cuts the answer of a call at many places and gives the whole answer to the next attempt.
async fn check_cuts(vendor: Provider, before: &[Vec<u8>], cut: &[Vec<u8>], after: &[Vec<u8>]) {
    let complete = |frames: &[Vec<u8>]| vec![vendor.complete(frames.to_vec())];
    let around = |answer: Vec<Vec<Step>>| {
        let parts = [before, after].map(|frames| if frames.is_empty() { vec![] } else { complete(frames) });
        let [before, after] = parts;
        [before, answer, after].concat()
    };
    let server = Server::start(around(complete(cut))).await;
    let whole = conversation(&run(patient(vendor.model(&server.url()))).await);
    // Every byte takes minutes; a step that is no divisor of anything meets insides of characters
    // and calls as well.
    let step = if std::env::var_os("RUN_SLOW_TESTS").is_some() { 1 } else { 41 };
    let body = cut.concat();
    let mut taken_back = 0;
    for at in (1..body.len()).step_by(step) {
        let script = [vec![vendor.stream([body[..at].to_vec()])], complete(cut)].concat();
        let server = Server::start(around(script)).await;
        let events = run(patient(vendor.model(&server.url()))).await;
        let text = render(&events);
        let is_repeated = events.iter().any(|event| matches!(event.kind, EventKind::ModelRetry { .. }));
        taken_back += events.iter().filter(|event| event.kind.taken_back().is_some()).count();
        if !is_repeated {
            // The answer was complete for the vendor's protocol, and the next one is to a third
            // call.
            let until_answer = if after.is_empty() { whole.len() } else { whole.len() - 1 };
            assert_eq!(conversation(&events)[..until_answer], whole[..until_answer], "cut at {at}\n{text}");
            continue;
        }
        assert!(events.last().unwrap().to_string().contains("AGENT_END success"), "cut at {at}\n{text}");
        assert_eq!(conversation(&events), whole, "{vendor:?}, cut at {at} of {}\n{text}", body.len());
    }
    assert!(taken_back > 3, "{vendor:?}");
}

#[tokio::test]
async fn a_cut_anywhere_is_not_the_end_of_a_run() {
    for vendor in vendors().await {
        let (call, hello) = (vendor.frames(call()).await, vendor.frames(hello()).await);
        check_cuts(vendor, &[], &call, &hello).await;
        // The result of the tool stays, and the tool does not run again.
        check_cuts(vendor, &call, &hello, &[]).await;
    }
}

#[tokio::test]
async fn silence_is_a_timeout_before_and_after_the_first_word() {
    let before = async |vendor: Provider| {
        let silent = [vendor.stream([]), vec![Step::AwaitClose]].concat();
        vec![silent, vendor.complete(vendor.frames(hello()).await)]
    };
    let seen = check(before, wrapped).await;
    assert!(
        seen.contains("MODEL_RETRY #1") && seen.contains("(timeout: ") && seen.contains("AGENT_END success"),
        "{seen}"
    );

    let after = async |vendor: Provider| {
        let frames = vendor.frames(hello()).await;
        let first = frames.iter().position(|frame| String::from_utf8_lossy(frame).contains("Grüße")).unwrap();
        let silent = [vendor.stream(frames[..=first].to_vec()), vec![Step::AwaitClose]].concat();
        vec![silent, vendor.complete(frames)]
    };
    let seen = check(after, wrapped).await;
    assert!(seen.contains("(timeout: ") && seen.contains(", takes back 1 block"), "{seen}");
    assert!(seen.contains("AGENT_RESULT \"Grüße an alle\"") && seen.contains("AGENT_END success"), "{seen}");
}

#[tokio::test]
async fn a_second_model_answers_where_the_first_is_down() {
    for vendor in vendors().await {
        let no = whole("503 Service Unavailable", "", &vendor.refusal("Down.").await);
        let server = Server::start(vec![no.clone(), no.clone(), no]).await;
        let spare = ScriptedModel::named("spare").agent("main", [Turn::new().text("I can.")]);
        let seen =
            shown(&run(Fallback::new(patient(vendor.model(&server.url())), spare)).await, &server.host());
        assert!(
            seen.contains("MODEL_FALLBACK main → spare") && seen.contains("I can."),
            "{vendor:?}: {seen}"
        );
    }
}

#[tokio::test]
async fn garbage_is_an_error_that_quotes_it() {
    for vendor in vendors().await {
        let mut frames = vendor.frames(hello()).await;
        let first = frames.iter().position(|frame| String::from_utf8_lossy(frame).contains("Grüße")).unwrap();
        frames.insert(first + 1, vendor.garbage());
        // The call is repeated; a server that sends it each time fails.
        let again = vec![vendor.complete(frames.clone()), vendor.complete(vendor.frames(hello()).await)];
        let server = Server::start(again).await;
        let seen = shown(&run(wrapped(vendor.model(&server.url()))).await, &server.host());
        assert!(seen.contains("AGENT_RESULT \"Grüße an alle\""), "{vendor:?}: {seen}");
        let server = Server::start(vec![vendor.complete(frames); 3]).await;
        let seen = shown(&run(wrapped(vendor.model(&server.url()))).await, &server.host());
        assert!(seen.contains("\"Grüße \"") && seen.contains("AGENT_END error"), "{vendor:?}: {seen}");
        assert!(
            seen.contains("(protocol: SERVER sent what is no") && seen.contains("nonsense"),
            "{vendor:?}: {seen}"
        );
    }
}

#[tokio::test]
async fn what_nobody_knows_yet_is_passed_over() {
    let plain = async |vendor: Provider| vec![vendor.complete(vendor.frames(hello()).await)];
    let with_news = async |vendor: Provider| {
        let frames = vendor.frames(hello()).await.into_iter();
        // Not after the last one, which ends the answer.
        let frames = frames.flat_map(|frame| [vendor.unknown(), frame]);
        vec![vendor.complete(frames)]
    };
    let expected = check(plain, bare).await;
    assert_eq!(check(with_news, bare).await, expected);
}

#[tokio::test]
async fn an_end_that_is_said_twice_is_one() {
    let plain = async |vendor: Provider| vec![vendor.complete(vendor.frames(hello()).await)];
    let twice = async |vendor: Provider| {
        let mut frames = vendor.frames(hello()).await;
        frames.extend(frames.last().cloned());
        vec![vendor.complete(frames)]
    };
    let expected = check(plain, bare).await;
    assert_eq!(check(twice, bare).await, expected);
}

/// Runs a script on a server that speaks each vendor's API.
async fn scripted(script: impl Fn() -> Vec<Turn>) -> String {
    let mut same: Option<(Provider, String)> = None;
    for vendor in vendors().await {
        let server = ModelServer::start(ScriptedModel::new().agent("main", script())).await.unwrap();
        let host = server.root_url().replace("http://", "");
        let seen = shown(&run(vendor.model(&server.root_url())).await, &host);
        let (first, expected) = same.get_or_insert_with(|| (vendor, seen.clone()));
        assert_eq!(&seen, expected, "{vendor:?} and {first:?}");
    }
    same.unwrap().1
}

#[tokio::test]
async fn odd_answers_are_the_same_odd_answers_everywhere() {
    let used = |turn: Turn| turn.usage(Usage::new(3, 2));
    let said = || used(Turn::new().text("There."));
    // An answer without anything, and one of thoughts alone: the agent is asked to speak.
    for odd in [Turn::new, || Turn::new().thinking("Hm.")] {
        // Played, not scripted: a script goes by what was said so far, which is nothing.
        let twice = async |vendor: Provider| {
            let (odd, said) = (vendor.frames(used(odd())).await, vendor.frames(said()).await);
            vec![vendor.complete(odd), vendor.complete(said)]
        };
        let seen = check(twice, bare).await;
        assert!(seen.contains("HINT_BLOCK") && seen.contains("AGENT_RESULT \"There.\""), "{seen}");
    }
    // Two calls of one id stay two.
    let twins = || {
        let start = |slot| ModelDelta::CallStart { slot, id: Some("same".into()), name: "look".to_owned() };
        let arguments = |slot| ModelDelta::CallArguments { slot, delta: "{}".to_owned() };
        let end = |slot| ModelDelta::CallEnd { slot, opaque: Default::default() };
        let one = |turn: Turn, slot| turn.delta(start(slot)).delta(arguments(slot)).delta(end(slot));
        used(one(one(Turn::new(), 0), 1).stop(StopReason::ToolCalls))
    };
    let seen = scripted(|| vec![twins(), said()]).await;
    assert_eq!(seen.matches("TOOL_RESULT_END look success").count(), 2, "{seen}");
    // A call without an id gets one.
    let nameless = || {
        let start = ModelDelta::CallStart { slot: 0, id: None, name: "look".to_owned() };
        let end = ModelDelta::CallEnd { slot: 0, opaque: Default::default() };
        used(
            Turn::new()
                .delta(start)
                .delta(ModelDelta::CallArguments { slot: 0, delta: "{}".to_owned() })
                .delta(end)
                .stop(StopReason::ToolCalls),
        )
    };
    let seen = scripted(|| vec![nameless(), said()]).await;
    assert_eq!(seen.matches("TOOL_RESULT_END look success").count(), 1, "{seen}");
}

#[tokio::test]
async fn arguments_that_are_no_json_go_back_to_the_model() {
    // Of these three alone the arguments are text on the wire.
    let textual = |vendor: &Provider| ["openai", "responses", "anthropic"].contains(&vendor.name());
    for vendor in vendors().await.into_iter().filter(textual) {
        let broken = Turn::new().raw_call("look", "{\"at\": ");
        let server =
            ModelServer::start(ScriptedModel::new().agent("main", [broken, Turn::new().text("Again.")]))
                .await
                .unwrap();
        let seen = shown(&run(vendor.model(&server.root_url())).await, "-");
        assert!(
            seen.contains("the arguments of look are not JSON") && seen.contains("Again."),
            "{vendor:?}: {seen}"
        );
    }
}

#[tokio::test]
async fn an_answer_without_usage_costs_what_nobody_knows() {
    for vendor in vendors().await {
        let frames = vendor.frames(hello()).await;
        let frames = frames.into_iter().map(|frame| without_usage(&frame));
        let server = Server::start(vec![vendor.complete(frames)]).await;
        let seen = shown(&run(vendor.model(&server.url())).await, &server.host());
        assert!(
            seen.contains("AGENT_RESULT \"Grüße an alle\"") && seen.contains("AGENT_END success"),
            "{vendor:?}: {seen}"
        );
        assert!(!seen.contains("19 tok"), "{vendor:?}: {seen}");
    }
}

/// Returns a frame whose JSON has lost what says the usage.
fn without_usage(frame: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(frame).unwrap();
    let (before, json) = match text.find('{') {
        Some(at) => text.split_at(at),
        None => return frame.to_vec(),
    };
    let mut value: Value = serde_json::from_str(json.trim()).unwrap();
    strip(&mut value);
    format!("{before}{value}{}", &json[json.trim_end().len()..]).into_bytes()
}

fn strip(value: &mut Value) {
    if let Value::Object(fields) = value {
        for name in ["usage", "usageMetadata", "prompt_eval_count", "eval_count"] {
            fields.remove(name);
        }
        fields.values_mut().for_each(strip);
    }
}
