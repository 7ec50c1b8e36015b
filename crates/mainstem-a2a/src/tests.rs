//! What events become, answers, and versions.

use a2a::{Message, Part, PartContent, Role, StreamResponse, TaskState};
use mainstem_encode::Encoder as _;
use mainstem_event::{AgentEvent, Decision};
use serde_json::{Value, json};

use crate::{
    Framing, TaskFold,
    answer::{Answer, answers},
    error::{check_version, rest, rpc},
    extension::{Extension, URI, is_wanted},
    input,
};

/// An event of the root, or of a child with this reply.
fn event(seq: u64, reply: &str, kind: Value) -> AgentEvent {
    let mut event = json!({ "seq": seq, "sessionId": "s", "runId": "r", "replyId": reply, "createdAt": "2026-11-22T10:00:00Z" });
    if reply != "root" {
        event["source"] = json!({ "agentKey": format!("agent:kid:{reply}"), "agentId": "kid", "sessionId": format!("sub-{reply}"),
            "parentSessionId": "s", "depth": 1, "path": "s/kid", "turn": 1, "streamId": 1 });
    }
    let fields = kind.as_object().unwrap().clone();
    event.as_object_mut().unwrap().extend(fields);
    serde_json::from_value(event).unwrap()
}

fn start() -> Value {
    json!({ "type": "AGENT_START", "name": "main", "role": "assistant",
        "input": [{ "role": "user", "content": [{ "type": "text", "text": "go" }] }] })
}

fn ask(id: &str) -> Value {
    json!({ "type": "REQUIRE_USER_CONFIRM", "confirmId": id,
        "toolCalls": [{ "id": "c", "name": "shout", "arguments": "{\"word\":1}" }] })
}

fn end(outcome: &str) -> Value {
    json!({ "type": "AGENT_END", "outcome": outcome, "usage": { "own": {}, "inclusive": {} }, "durationMs": 1 })
}

/// Returns the updates of events, a line for each.
fn updates(extension: Option<Extension>, events: &[(&str, Value)]) -> Vec<String> {
    let mut stream = TaskFold::new("r", "s").with_extension(extension).into_stream(Framing::Plain);
    let mut frames = String::from_utf8(stream.begin().to_vec()).unwrap();
    for (seq, (reply, kind)) in events.iter().enumerate() {
        frames += std::str::from_utf8(&stream.event(&event(seq as u64 + 1, reply, kind.clone()))).unwrap();
    }
    let data = frames.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| shown(serde_json::from_str(data).unwrap())).collect()
}

fn shown(update: StreamResponse) -> String {
    let text = |part: &Part| match &part.content {
        PartContent::Text(text) => text.clone(),
        PartContent::Raw(bytes) => format!("{} bytes", bytes.len()),
        other => format!("{other:?}"),
    };
    match update {
        StreamResponse::Task(task) => format!("task {:?}", task.status.state),
        StreamResponse::StatusUpdate(update) => {
            let of = update.metadata.map(|metadata| format!(" {}", metadata[URI]["type"]));
            format!("status {:?}{}", update.status.state, of.unwrap_or_default())
        }
        StreamResponse::ArtifactUpdate(update) => {
            let parts: Vec<_> = update.artifact.parts.iter().map(text).collect();
            format!("artifact {:?} {:?} {}", update.append, update.last_chunk, parts.join("|"))
        }
        StreamResponse::Message(message) => format!("message {:?}", message.text()),
    }
}

#[test]
fn a_run_is_a_task() {
    let text = |delta: &str| json!({ "type": "TEXT_BLOCK_DELTA", "blockId": "b", "delta": delta });
    let block = |kind: &str| json!({ "type": kind, "blockId": "b" });
    let all = [
        ("root", start()),
        ("root", block("TEXT_BLOCK_START")),
        ("root", text("Hi ")),
        ("kid", text("unheard")),
        ("root", text("there")),
        ("root", block("TEXT_BLOCK_END")),
        ("root", json!({ "type": "DATA_BLOCK_START", "blockId": "d", "mediaType": "image/png" })),
        ("root", json!({ "type": "DATA_BLOCK_DELTA", "blockId": "d", "delta": "cG" })),
        ("root", json!({ "type": "DATA_BLOCK_DELTA", "blockId": "d", "delta": "5n" })),
        ("root", block("DATA_BLOCK_END")),
        ("root", end("success")),
        ("root", start()),
    ];
    let expected = [
        "task Submitted",
        "status Working",
        "artifact Some(false) Some(false) Hi ",
        "artifact Some(true) Some(false) there",
        "artifact Some(true) Some(true) ",
        "artifact Some(false) Some(true) 3 bytes",
        "status Completed",
    ];
    assert_eq!(updates(None, &all), expected);
    let told = updates(Some(Extension::default()), &all);
    assert!(told.contains(&"status Working \"TEXT_BLOCK_DELTA\"".to_owned()), "{told:?}");
    assert_eq!(told.last().unwrap(), "status Completed \"AGENT_END\"");
}

#[test]
fn artifacts_of_a_failed_attempt_become_empty() {
    let text = |id: &str, delta: &str| json!({ "type": "TEXT_BLOCK_DELTA", "blockId": id, "delta": delta });
    let block = |kind: &str, id: &str| json!({ "type": kind, "blockId": id });
    let call = |number: u32| json!({ "type": "MODEL_CALL_START", "modelName": "m", "iteration": number });
    let all = [
        ("root", start()),
        ("root", call(1)),
        ("root", block("TEXT_BLOCK_START", "kept")),
        ("root", text("kept", "Hi.")),
        ("root", block("TEXT_BLOCK_END", "kept")),
        ("root", json!({ "type": "MODEL_CALL_END", "stopReason": "stop", "durationMs": 1 })),
        ("root", call(2)),
        ("root", block("TEXT_BLOCK_START", "one")),
        ("root", text("one", "Foo")),
        ("root", block("TEXT_BLOCK_END", "one")),
        ("root", block("TEXT_BLOCK_START", "two")),
        ("root", text("two", "Bar")),
        ("root", json!({ "type": "TEXT_BLOCK_END", "blockId": "two", "discarded": true })),
        (
            "root",
            json!({ "type": "MODEL_RETRY", "attempt": 1, "waitMs": 0, "error": { "code": "cut", "message": "cut" },
                "discarded": { "blocks": ["one", "two"], "toolCalls": [] } }),
        ),
        ("root", end("success")),
    ];
    let (emptied, told) = ("artifact Some(false) Some(true) ", updates(Some(Extension::default()), &all));
    assert_eq!(updates(None, &all).iter().filter(|update| *update == emptied).count(), 2);
    // The event comes behind what it empties.
    let retry = told.iter().position(|update| update == "status Working \"MODEL_RETRY\"").unwrap();
    assert_eq!(told[retry - 1], emptied);
    let mut fold = TaskFold::new("r", "s");
    (1..).zip(&all).for_each(|(seq, (reply, kind))| fold.apply(&event(seq, reply, kind.clone())));
    let texts: Vec<_> = fold
        .task(None)
        .artifacts
        .unwrap()
        .iter()
        .map(|one| one.parts[0].as_text().unwrap().to_owned())
        .collect();
    assert_eq!(texts, ["Hi.", "", ""]);
}

#[test]
fn each_outcome_is_a_state() {
    #[track_caller]
    fn check(outcome: &str, expected: &str) {
        assert_eq!(updates(None, &[("root", start()), ("root", end(outcome))]).pop().unwrap(), expected);
    }
    check("success", "status Completed");
    check("max_iterations", "status Completed");
    check("error", "status Failed");
    check("timeout", "status Failed");
    check("suspended", "status Failed");
    check("cancelled", "status Canceled");
}

#[test]
fn a_reader_that_missed_events_is_told() {
    let gap = json!({ "type": "GAP", "fromSeq": 2, "toSeq": 9, "missed": 8, "perAgent": {} });
    let mut fold = TaskFold::new("r", "s");
    fold.apply(&event(9, "root", gap.clone()));
    assert_eq!(fold.task(None).metadata.unwrap()[URI], json!({ "missed": 8 }));
    assert_eq!(updates(None, &[("root", start()), ("root", gap)]).pop().unwrap(), "status Working \"GAP\"");
}

#[test]
fn a_task_requires_input_until_all_is_answered() {
    let answered = |id: &str| json!({ "type": "USER_CONFIRM_RESULT", "confirmId": id, "confirmResults": [] });
    let all = [
        ("root", start()),
        ("kid", ask("one")),
        ("other", ask("two")),
        ("kid", answered("one")),
        // The second one asks no more.
        ("other", end("cancelled")),
        ("root", end("success")),
    ];
    let states = ["InputRequired", "InputRequired", "InputRequired", "Working", "Completed"];
    let expected: Vec<_> = states.iter().map(|state| format!("status {state}")).collect();
    assert_eq!(updates(None, &all)[2..], expected);
    let mut fold = TaskFold::new("r", "s");
    all[..3]
        .iter()
        .enumerate()
        .for_each(|(seq, (reply, kind))| fold.apply(&event(seq as u64, reply, kind.clone())));
    let parts = |fold: &TaskFold| fold.status().message.as_ref().map_or(0, |message| message.parts.len());
    assert_eq!((fold.pending().len(), parts(&fold), fold.is_interrupted()), (2, 4, true));
    fold.answered(&Answer::Decided("one".parse().unwrap(), Decision::Allow));
    assert_eq!((fold.pending().len(), parts(&fold), fold.is_interrupted()), (1, 2, true));
    fold.answered(&Answer::Decided("two".parse().unwrap(), Decision::Allow));
    assert_eq!((parts(&fold), fold.status().state.clone()), (0, TaskState::Working));
}

#[test]
fn a_message_answers_what_is_pending() {
    let mut fold = TaskFold::new("r", "s");
    fold.apply(&event(1, "kid", ask("one")));
    let external = json!({ "type": "REQUIRE_EXTERNAL_EXECUTION",
        "toolCalls": [{ "id": "x", "name": "open", "arguments": "{}" }] });
    let check = |fold: &TaskFold, parts: Vec<Part>, expected: Result<Vec<Answer>, &str>| {
        let message = Message { parts, ..Message::new(Role::User, Vec::new()) };
        match (answers(&message, fold.pending()), expected) {
            (Ok(given), Ok(expected)) => assert_eq!(given, expected),
            (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
            other => panic!("{other:?}"),
        }
    };
    let decided = |decision| Ok(vec![Answer::Decided("one".parse().unwrap(), decision)]);
    check(&fold, vec![Part::text("Yes!")], decided(Decision::Allow));
    check(&fold, vec![Part::text("no, it is late")], decided(Decision::Deny("it is late".into())));
    check(&fold, vec![Part::text("yes, but later")], Err("waits for `yes` or `no`"));
    check(&fold, vec![Part::text("nothing")], Err("waits for `yes` or `no`"));
    let data = |data: Value| vec![Part::data(data)];
    check(&fold, data(json!({ "confirmId": "one", "approved": true })), decided(Decision::Allow));
    let edited = json!({ "confirmId": "one", "approved": true, "input": { "word": 2 } });
    check(&fold, data(edited), decided(Decision::AllowWith(json!({ "word": 2 }))));
    check(&fold, data(json!({ "confirmId": "one" })), Err("`approved` has to be true or false"));
    check(
        &fold,
        data(json!({ "confirmId": "two", "approved": true })),
        Err("does not wait for an answer to \"two\""),
    );
    check(&fold, data(json!({ "approved": true })), Err("needs a `confirmId` or a `toolCallId`"));
    let mut fold = TaskFold::new("r", "s");
    fold.apply(&event(1, "root", external));
    let result = |content: &str, is_error| {
        Ok(vec![Answer::Result { call: "x".into(), content: content.into(), is_error }])
    };
    check(&fold, vec![Part::text("it is open")], result("it is open", false));
    check(
        &fold,
        data(json!({ "toolCallId": "x", "content": { "a": 1 }, "isError": true })),
        result("{\"a\":1}", true),
    );
    check(
        &fold,
        data(json!({ "toolCallId": "y", "content": "" })),
        Err("does not wait for an answer to \"y\""),
    );
}

#[test]
fn a_message_is_an_input_and_back() {
    let parts = vec![
        Part::text("look"),
        Part::raw(vec![1, 2]).with_media_type("image/png"),
        Part::url("https://a.example/b").with_media_type("image/png"),
        Part::data(json!({ "a": 1 })),
    ];
    let message = Message { message_id: "m".into(), ..Message::new(Role::User, parts.clone()) };
    let input = input::from_message(&message).unwrap();
    let back = TaskFold::new("r", "s").with_input(&input).task(None).history.unwrap().pop().unwrap();
    assert_eq!((back.message_id.as_str(), back.task_id.as_deref()), ("m", Some("r")));
    assert_eq!((&back.parts[..3], &back.parts[3]), (&parts[..3], &Part::text("{\"a\":1}")));
    let agent = Message::new(Role::Agent, vec![Part::text("x")]);
    assert!(input::from_message(&agent).is_none());
}

#[test]
fn only_this_version_is_spoken() {
    #[track_caller]
    fn check(version: Option<&str>, is_spoken: bool) {
        assert_eq!(check_version(version).is_ok(), is_spoken, "{version:?}");
    }
    check(Some("1.0"), true);
    check(Some("1.0.1"), true);
    check(Some("1.01"), false);
    check(Some("1.1"), false);
    check(Some("0.3"), false);
    check(Some(""), false);
    check(None, false);
    assert!(is_wanted(&format!("https://a.example, {URI}")) && !is_wanted("https://a.example"));
}

#[test]
fn errors_have_the_forms_of_both_bindings() {
    let error = a2a::A2AError::task_not_found("t");
    let details = json!([{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND",
        "domain": "a2a-protocol.org", "metadata": {} }]);
    let message = "task not found: t";
    let expected = json!({ "jsonrpc": "2.0", "id": 7, "error": { "code": -32001, "message": message, "data": details } });
    assert_eq!(rpc(a2a::JsonRpcId::Number(7), &error), expected);
    let expected =
        json!({ "error": { "code": 404, "status": "NOT_FOUND", "message": message, "details": details } });
    assert_eq!(rest(&error), expected);
}
