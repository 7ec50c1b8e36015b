//! Each kind in the form of AgentScope, and what a detail leaves out.

use std::{collections::BTreeSet, sync::Arc};

use mainstem_event::{AgentEvent, EventKind, EventSource, Origin, RunSettings, Timestamp};
use serde_json::{Value, json};

use super::*;

const NOW: Timestamp = Timestamp::from_micros(1_795_000_000_000_000);

fn origin(is_below: bool) -> Arc<Origin> {
    let source = EventSource {
        agent_key: "agent:kid:1".parse().unwrap(),
        agent_id: "kid".into(),
        agent_name: None,
        label: None,
        title: None,
        session_id: "sub-kid".parse().unwrap(),
        parent_session_id: "s".parse().unwrap(),
        depth: 1,
        path: "s/kid".into(),
        task_id: None,
        turn: 1,
        parent_tool_call_id: Some("call-1".into()),
        stream_id: 1,
    };
    Arc::new(Origin {
        reply_id: Some("reply-1".parse().unwrap()),
        source: is_below.then(|| Arc::new(source)),
        ..Origin::session("s".parse().unwrap(), Some("run-1".parse().unwrap()))
    })
}

fn encoder(detail: Detail) -> AgentProtocol {
    AgentProtocol::new("t").with_detail(detail)
}

/// Returns the events of one of ours.
fn events(detail: Detail, kind: EventKind, is_below: bool) -> Vec<TaskEvent> {
    encoder(detail).events(&AgentEvent::new(7, NOW, origin(is_below), kind))
}

fn payload(event: &TaskEvent) -> Value {
    serde_json::from_str(event.payload.as_deref().unwrap()).unwrap()
}

#[test]
fn every_kind_has_a_form() {
    let lines: Vec<_> = EventKind::examples()
        .into_iter()
        .flat_map(|kind| {
            let name = kind.name().to_owned();
            let events = events(Detail::Verbose, kind, false);
            events.into_iter().map(move |event| {
                let fields = serde_json::to_value(&TaskEvent {
                    payload: None,
                    timestamp: None,
                    task_id: None,
                    ..event.clone()
                })
                .unwrap();
                let payload = event.payload.as_ref().map(|_| {
                    let mut payload = payload(&event);
                    for name in ["id", "createdAt", "replyId"] {
                        payload.as_object_mut().unwrap().remove(name);
                    }
                    payload
                });
                format!("{name}: {fields} {}", payload.unwrap_or_default())
            })
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_frame_has_its_number_and_name() {
    let kind = EventKind::Custom { name: "n".to_owned(), value: json!(1) };
    let frame = encoder(Detail::Verbose).event(&AgentEvent::new(7, NOW, origin(false), kind));
    insta::assert_snapshot!(String::from_utf8_lossy(&frame), @r#"
    id: 7
    event: AGENT_EVENT
    data: {"seq":7,"type":"AGENT_EVENT","taskId":"t","timestamp":"2026-11-18T11:06:40.000000Z","eventType":"CUSTOM","payload":"{\"type\":\"CUSTOM\",\"name\":\"n\",\"value\":{\"value\":1},\"replyId\":\"reply-1\",\"id\":\"s.7\",\"createdAt\":\"2026-11-18T11:06:40.000000Z\"}"}
    "#);
    assert!(encoder(Detail::Full).keep_alive().starts_with(b":"));
    assert!(encoder(Detail::Full).fail("{}").starts_with(b":"), "it is not an event of the task");
}

#[test]
fn a_detail_includes_those_below_it() {
    for kind in EventKind::examples() {
        for is_below in [false, true] {
            let of = |detail| -> BTreeSet<String> {
                events(detail, kind.clone(), is_below).iter().map(|event| json!(event).to_string()).collect()
            };
            let (status, full, verbose) = (of(Detail::Status), of(Detail::Full), of(Detail::Verbose));
            assert!(status.is_subset(&full) && full.is_subset(&verbose), "{}", kind.name());
            assert!(!verbose.is_empty(), "{} is left out", kind.name());
            // The second is of no agent.
            let is_request =
                matches!(kind, EventKind::RequireUserConfirm { .. } | EventKind::RunCancelled { .. });
            assert!(!is_below || is_request || full.is_empty(), "{} would be the task's own", kind.name());
        }
    }
}

#[test]
fn what_is_not_for_others_stays_here() {
    let start = EventKind::examples().into_iter().find(|kind| kind.name() == "AGENT_START").unwrap();
    let settings = RunSettings::default();
    let EventKind::AgentStart { name, role, input, .. } = start.clone() else { panic!() };
    let mut with_settings = EventKind::agent_start(name, role, input);
    if let EventKind::AgentStart { settings: place, .. } = &mut with_settings {
        *place = Some(Arc::new(settings));
    }
    for kind in [start, with_settings] {
        let text = payload(&events(Detail::Verbose, kind, false)[0]).to_string();
        assert!(!text.contains("spec") && !text.contains("settings"), "{text}");
    }
    for kind in EventKind::examples() {
        for event in events(Detail::Verbose, kind, true) {
            assert!(!event.payload.unwrap_or_default().contains("b64=="), "what a vendor requires back");
        }
    }
}

#[test]
fn a_reader_behind_the_first_of_two_gets_the_second() {
    let end = EventKind::agent_end(Outcome::Success, Default::default(), 0);
    let event = AgentEvent::new(7, NOW, origin(false), end);
    let of = |after: u64| {
        encoder(Detail::Status)
            .with_from_seq(after)
            .events(&event)
            .iter()
            .map(|one| one.seq)
            .collect::<Vec<_>>()
    };
    assert_eq!((of(6), of(7), of(8)), (vec![7, 8], vec![8], vec![]));
}

#[test]
fn a_request_is_read_leniently() {
    #[track_caller]
    fn check(json: Value, expected: &str) {
        let read: Result<Submit, _> = serde_json::from_value(json);
        let shown = read.map_or_else(|error| error.to_string(), |task| serde_json::to_string(&task).unwrap());
        assert_eq!(shown, expected);
    }
    check(json!({}), r#"{"task_id":null,"agent_id":null,"input":null,"context":null}"#);
    check(
        json!({ "task_id": 7, "input": true, "context": null, "more": 1 }),
        r#"{"task_id":"7","agent_id":null,"input":"true","context":null}"#,
    );
    check(json!({ "task_id": {} }), "expected a text");
    let verdict = |json: Value| serde_json::from_value::<Verdict>(json).unwrap();
    for (approved, expected) in
        [(json!(true), true), (json!("TRUE"), true), (json!("false"), false), (json!(1), false)]
    {
        let read = verdict(json!({ "tool_call_id": "c", "approved": approved }));
        assert_eq!((read.tool_call_id.as_deref(), read.approved), (Some("c"), expected));
    }
    for (word, detail) in [
        (None, "status"),
        (Some(""), "status"),
        (Some("FULL"), "full"),
        (Some("verbose"), "verbose"),
        (Some("x"), "status"),
    ] {
        assert_eq!(Detail::parse(word).to_string(), detail);
    }
    assert_eq!(
        serde_json::from_value::<TaskEvent>(json!({ "type": "NEWER" })).unwrap().kind,
        EventType::Unknown
    );
}
