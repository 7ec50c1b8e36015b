//! What a reading shows: of updates and states in any order, each text once.

use mainstem_a2a::sdk::{
    Artifact, Message, Part, Role, StreamResponse, Task, TaskArtifactUpdateEvent, TaskState, TaskStatus,
    TaskStatusUpdateEvent,
};
use mainstem_event::{Decision, EventKind};
use proptest::{collection::vec, prelude::*};
use serde_json::json;

use super::{MAX_SHOWN, Reading, TooMany};

fn said(id: &str, text: &str) -> Message {
    Message { message_id: id.into(), ..Message::new(Role::Agent, vec![Part::text(text)]) }
}

fn artifact(id: &str, texts: &[&str]) -> Artifact {
    let parts = texts.iter().map(|text| Part::text(*text)).collect();
    Artifact {
        artifact_id: id.into(),
        name: None,
        description: None,
        parts,
        metadata: None,
        extensions: None,
    }
}

fn chunk(id: &str, text: &str, append: bool) -> StreamResponse {
    StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
        task_id: "t".into(),
        context_id: "c".into(),
        artifact: artifact(id, &[text]),
        append: Some(append),
        last_chunk: None,
        metadata: None,
    })
}

fn status(state: TaskState, message: Option<Message>) -> StreamResponse {
    let status = TaskStatus { state, message, timestamp: None };
    StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
        task_id: "t".into(),
        context_id: "c".into(),
        status,
        metadata: None,
    })
}

fn state(artifacts: Vec<Artifact>, history: Vec<Message>) -> StreamResponse {
    StreamResponse::Task(Task {
        id: "t".into(),
        context_id: "c".into(),
        status: TaskStatus { state: TaskState::Working, message: None, timestamp: None },
        artifacts: Some(artifacts),
        history: Some(history),
        metadata: None,
    })
}

/// Returns what is shown: texts, thoughts in brackets, a bar between blocks.
fn shown(reading: &mut Reading) -> String {
    let mut all = String::new();
    for event in reading.take() {
        match event.kind {
            EventKind::TextBlockStart { .. } | EventKind::ThinkingBlockStart { .. } => all.push('|'),
            EventKind::TextBlockDelta { delta, .. } => all.push_str(&delta),
            EventKind::ThinkingBlockDelta { delta, .. } => all.push_str(&format!("({delta})")),
            EventKind::AgentEnd { outcome, error, .. } => {
                all.push_str(&format!("; {}", outcome.as_str()));
                all.extend(error.map(|error| format!(" {}", error.message)));
            }
            _ => {}
        }
    }
    all
}

#[test]
fn each_text_is_shown_once() {
    #[track_caller]
    fn check(updates: Vec<StreamResponse>, expected: &str) {
        let mut reading = Reading::new("far");
        updates.into_iter().for_each(|update| reading.apply(update).unwrap());
        assert_eq!(shown(&mut reading), expected);
    }
    let end = || status(TaskState::Completed, None);
    check(vec![chunk("a", "one ", false), chunk("a", "two", true), end()], "|one two; success");
    // The state after a cut has what was missed, and what was shown.
    let cut =
        vec![chunk("a", "one ", false), state(vec![artifact("a", &["one ", "two ", "three"])], Vec::new())];
    check(cut, "|one two three");
    let other =
        vec![chunk("a", "one", false), state(vec![artifact("a", &["one"]), artifact("b", &["new"])], vec![])];
    check(other, "|one|new");
    // What was replaced is shown again, whole.
    check(vec![chunk("a", "first", false), chunk("a", "second", false)], "|first|second");
    check(vec![chunk("a", "fir", false), chunk("a", "first", false)], "|first");
    check(vec![chunk("a", "x", false), chunk("b", "y", false), chunk("a", "z", true)], "|x|y|z");
    let progress = || Some(said("m", "I look"));
    let twice = vec![
        status(TaskState::Working, progress()),
        state(vec![], vec![said("m", "I look"), said("n", "more")]),
    ];
    check(twice, "|(I look)|(more)");
    // The last message is the answer only without artifacts.
    check(vec![status(TaskState::Completed, Some(said("m", "Done")))], "|Done; success");
    check(vec![chunk("a", "x", false), status(TaskState::Completed, Some(said("m", "Done")))], "|x; success");
    check(vec![StreamResponse::Message(said("m", "Hi"))], "|Hi; success");
    check(vec![status(TaskState::Failed, None)], "; error the remote agent failed");
    let why = Some(said("m", "no time"));
    check(vec![status(TaskState::Rejected, why)], "; error the remote agent rejected the task: no time");
    check(
        vec![status(TaskState::Canceled, None), chunk("a", "late", false)],
        "; cancelled the remote task was cancelled",
    );
}

#[test]
fn an_answer_is_discarded_once_all_of_it_is_replaced() {
    #[track_caller]
    fn check(updates: Vec<StreamResponse>, expected: usize) {
        let mut reading = Reading::new("far");
        updates.into_iter().for_each(|update| reading.apply(update).unwrap());
        let discards = reading.take().into_iter().filter_map(|event| event.kind.taken_back().cloned());
        assert_eq!(discards.map(|discarded| discarded.blocks.len()).sum::<usize>(), expected);
    }
    let (one, two) = (|| chunk("a", "one", false), || chunk("b", "two", false));
    let emptied = |id| chunk(id, "", false);
    check(vec![one(), two(), emptied("b"), emptied("a"), chunk("c", "one two", false)], 2);
    check(vec![one(), two(), emptied("b")], 0);
    check(vec![one(), chunk("a", "other", false)], 1);
    let thinking = || status(TaskState::Working, Some(said("m", "I look")));
    check(vec![one(), thinking(), emptied("a")], 0);
    check(vec![one(), status(TaskState::InputRequired, None), thinking(), emptied("a")], 0);
}

#[test]
fn requests_are_answered_together() {
    let mut reading = Reading::new("far");
    reading.apply(state(Vec::new(), Vec::new())).unwrap();
    let ask = |id: &str| {
        Part::data(
            json!({ "kind": "approval", "confirmId": id, "toolCalls": [{ "id": "c", "name": "sh", "input": {} }] }),
        )
    };
    let run =
        Part::data(json!({ "kind": "results", "toolCalls": [{ "id": "x", "name": "open", "input": {} }] }));
    let message = Message { parts: vec![ask("one"), run], ..said("m", "") };
    reading.apply(status(TaskState::InputRequired, Some(message.clone()))).unwrap();
    // The same again, then with one more.
    reading.apply(status(TaskState::InputRequired, Some(message.clone()))).unwrap();
    let more = Message {
        message_id: "n".into(),
        parts: [message.parts, vec![ask("two")]].concat(),
        ..said("n", "")
    };
    reading.apply(status(TaskState::InputRequired, Some(more))).unwrap();
    let (mut asked, mut calls) = (Vec::new(), Vec::new());
    for event in reading.take() {
        match event.kind {
            EventKind::RequireUserConfirm { confirm_id, .. } => asked.push(confirm_id),
            EventKind::RequireExternalExecution { tool_calls, .. } => calls.extend(tool_calls),
            _ => {}
        }
    }
    assert_eq!((asked.len(), calls.len()), (2, 1));
    reading.decide(&asked[0], &Decision::Deny("late".into()));
    reading.ran(&calls[0].id, "opened", false);
    assert!(reading.reply().is_none() && reading.is_waiting());
    reading.decide(&asked[1], &Decision::Allow);
    let reply = reading.reply().unwrap();
    let expected = [
        json!({ "confirmId": "one", "approved": false, "reason": "late" }),
        json!({ "toolCallId": "x", "content": "opened", "isError": false }),
        json!({ "confirmId": "two", "approved": true }),
    ];
    assert_eq!(reply.parts, expected.map(Part::data));
    assert_eq!((reply.task_id.as_deref(), reply.context_id.as_deref()), (Some("t"), Some("c")));
    assert!(reading.reply().is_none(), "a reply is sent once");
}

#[test]
fn a_request_that_another_client_answers_is_withdrawn() {
    let mut reading = Reading::new("far");
    reading.apply(status(TaskState::InputRequired, Some(said("m", "Which?")))).unwrap();
    assert!(reading.is_waiting());
    reading.apply(status(TaskState::Working, None)).unwrap();
    let withdrawn = reading.take().iter().filter(|event| event.kind.name() == "USER_CONFIRM_RESULT").count();
    assert!(!reading.is_waiting() && withdrawn == 1);
}

#[test]
fn a_server_can_not_make_a_reading_grow() {
    let mut reading = Reading::new("far");
    let mut apply = |update| reading.apply(update);
    (0..MAX_SHOWN).for_each(|id| apply(chunk(&id.to_string(), "x", false)).unwrap());
    assert_eq!(apply(chunk("more", "x", false)), Err(TooMany));
    (0..MAX_SHOWN)
        .for_each(|id| apply(status(TaskState::Working, Some(said(&id.to_string(), "x")))).unwrap());
    assert_eq!(apply(status(TaskState::Working, Some(said("more", "x")))), Err(TooMany));
}

proptest! {
    /// A task's artifacts grow at their ends. Of each chunk the reader gets the update, or it is
    /// lost; then the state follows before the next update.
    #[test]
    fn nothing_is_lost_or_shown_twice(chunks in vec((0..3_usize, "[a-zé]{1,3}", any::<bool>()), 1..30)) {
        let mut there = vec![String::new(); 3];
        let mut reading = Reading::new("far");
        let mut here = vec![String::new(); 3];
        let whole = |there: &[String]| {
            let ids = there.iter().enumerate().filter(|(_, text)| !text.is_empty());
            state(ids.map(|(id, text)| artifact(&id.to_string(), &[text])).collect(), Vec::new())
        };
        let mut is_lost = false;
        for (id, text, lost) in chunks {
            let append = !there[id].is_empty();
            there[id].push_str(&text);
            if lost {
                is_lost = true;
                continue;
            }
            if std::mem::take(&mut is_lost) {
                reading.apply(whole(&there)).unwrap();
            } else {
                reading.apply(chunk(&id.to_string(), &text, append)).unwrap();
            }
            prop_assert!(reading.open.is_some());
        }
        reading.apply(whole(&there)).unwrap();
        for (id, bytes) in reading.artifacts.bytes() {
            here[id.parse::<usize>().unwrap()] = "x".repeat(bytes);
        }
        let shown: String = shown(&mut reading).split('|').collect();
        let lengths = |all: &[String]| all.iter().map(String::len).collect::<Vec<_>>();
        prop_assert_eq!(lengths(&here), lengths(&there));
        prop_assert_eq!(shown.len(), there.concat().len());
        let sorted = |text: String| { let mut all: Vec<_> = text.chars().collect(); all.sort_unstable(); all };
        prop_assert_eq!(sorted(shown), sorted(there.concat()));
    }
}

/// Any update of a server that keeps no order.
fn any_update() -> impl Strategy<Value = StreamResponse> {
    let text = || "[a-z]{0,3}";
    let part = prop_oneof![
        4 => text().prop_map(Part::text),
        1 => Just(Part::raw(vec![1])),
        1 => Just(Part::url("https://a.example")),
        1 => Just(Part::data(json!({ "kind": "results", "toolCalls": [{ "id": "x", "name": "open" }] }))),
        1 => (0..3_u8).prop_map(|id| Part::data(json!({ "kind": "approval", "confirmId": format!("c{id}"),
            "toolCalls": [{ "id": "a", "name": "sh", "input": 1 }, { "id": "b", "name": "sh" }] }))),
    ];
    let message = (0..5_u8, vec(part.clone(), 0..3))
        .prop_map(|(id, parts)| Message { parts, ..said(&id.to_string(), "") });
    let states = [
        TaskState::Working,
        TaskState::Submitted,
        TaskState::InputRequired,
        TaskState::InputRequired,
        TaskState::Unspecified,
        TaskState::Completed,
        TaskState::Failed,
        TaskState::AuthRequired,
    ];
    let of_status = (proptest::sample::select(states.to_vec()), proptest::option::of(message.clone()));
    let artifact = (0..3_u8, vec(part, 0..3))
        .prop_map(|(id, parts)| Artifact { parts, ..artifact(&id.to_string(), &[]) });
    let chunk = (artifact.clone(), any::<Option<bool>>(), any::<Option<bool>>()).prop_map(
        |(artifact, append, last)| {
            let StreamResponse::ArtifactUpdate(update) = chunk("", "", false) else { unreachable!() };
            StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
                artifact,
                append,
                last_chunk: last,
                ..update
            })
        },
    );
    prop_oneof![
        8 => chunk,
        6 => of_status.prop_map(|(state, message)| status(state, message)),
        2 => (vec(artifact, 0..3), vec(message.clone(), 0..3)).prop_map(|(artifacts, history)| state(artifacts, history)),
        1 => message.prop_map(StreamResponse::Message),
    ]
}

proptest! {
    /// No server can make the translation break a law.
    #[test]
    fn what_is_read_is_lawful(updates in vec((any_update(), any::<bool>()), 1..40)) {
        let mut reading = Reading::new("far");
        let mut admission = crate::admission::Admission::new("s".parse().unwrap(), 3);
        let mut asked = Vec::new();
        for (update, answers) in updates {
            reading.apply(update).unwrap();
            if answers && !asked.is_empty() {
                reading.decide(&asked.remove(0), &Decision::Allow);
                reading.reply();
            }
            for event in reading.take() {
                if let EventKind::RequireUserConfirm { confirm_id, .. } = &event.kind {
                    asked.push(confirm_id.clone());
                }
                let name = event.kind.name().to_owned();
                let admitted = admission.admit(event);
                prop_assert!(admitted.is_ok(), "{}: {:?}", name, admitted);
            }
        }
    }
}
