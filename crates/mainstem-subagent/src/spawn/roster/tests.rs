//! The children of a session, their names, and which agent may talk to which.

use mainstem_model::ScriptedModel;
use mainstem_policy::Rules;
use mainstem_react::Agent;

use super::*;
use crate::catalog::CatalogEntry;

/// A child by its path of names below the root: `a`, or `a/b` for its child.
fn source(path: &str, stream_id: u64) -> EventSource {
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    EventSource {
        agent_key: key(name),
        agent_id: "worker".into(),
        agent_name: None,
        label: None,
        title: None,
        session_id: session(name),
        parent_session_id: session(parent.rsplit('/').next().unwrap_or_default()),
        depth: path.split('/').count() as u16,
        path: format!("s/{path}").into(),
        task_id: None,
        turn: 1,
        parent_tool_call_id: Some("call-1".into()),
        stream_id,
    }
}

fn key(name: &str) -> AgentKey {
    format!("agent:worker:{name}").parse().unwrap()
}

/// The session of an agent; that of the root has no name.
fn session(name: &str) -> SessionId {
    if name.is_empty() { "s".parse().unwrap() } else { format!("sub-{name}").parse().unwrap() }
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

fn enter(roster: &Roster, path: &str, stream_id: u64, label: Option<&str>) {
    let agent = Agent::builder("worker", ScriptedModel::new()).build().unwrap();
    let entry =
        CatalogEntry { spec: AgentSpec::new("worker", "").into(), agent: agent.into(), rules: Rules::new() };
    let lineage = Lineage::new(entry, None);
    if let Some(label) = label {
        roster.claim(label, &source(path, stream_id).agent_key).unwrap();
    }
    let source = EventSource { label: label.map(Arc::from), ..source(path, stream_id) };
    roster.enter(lineage, source, Carried::default(), at(1));
}

/// `a` with its child `b` and its grandchild `c`, and `d` beside it.
fn family() -> Roster {
    let roster = Roster::default();
    enter(&roster, "a", 1, Some("First"));
    enter(&roster, "a/b", 2, Some("second"));
    enter(&roster, "a/b/c", 3, None);
    enter(&roster, "d", 4, None);
    roster
}

fn keys(roster: &Roster, parent: Option<&str>) -> String {
    let list = roster.list(parent.map(session).as_ref());
    let names: Vec<_> =
        list.iter().map(|child| child.agent_key.as_str().trim_start_matches("agent:worker:")).collect();
    names.join(" ")
}

#[test]
fn a_label_is_taken_once_whatever_its_case() {
    let roster = Roster::default();
    roster.claim("Tests", &key("a")).unwrap();
    roster.claim("tests 2", &key("b")).unwrap();
    for label in ["Tests", "tests", "TESTS"] {
        assert_eq!(
            roster.claim(label, &key("c")).unwrap_err().to_string(),
            format!(
                "the label {label:?} is taken by agent:worker:a; choose another, or use agent_send to talk to it"
            )
        );
    }
}

#[test]
fn children_are_listed_in_the_order_of_their_start() {
    let roster = family();
    assert_eq!(keys(&roster, None), "a b c d");
    let first = &roster.list(None)[0];
    let expected = (key("a"), "worker".into(), Some("First".to_owned()), 1, ChildStatus::Running, 1, at(1));
    let ChildSummary { agent_key, agent_id, label, depth, status, turns, last_activity, .. } = first.clone();
    assert_eq!((agent_key, agent_id, label, depth, status, turns, last_activity), expected);
}

#[test]
fn a_parent_sees_those_below_it_and_no_others() {
    let roster = family();
    assert_eq!(keys(&roster, Some("")), "a b c d");
    assert_eq!(keys(&roster, Some("a")), "b c");
    assert_eq!(keys(&roster, Some("b")), "c");
    assert_eq!(keys(&roster, Some("c")), "");
    assert_eq!(keys(&roster, Some("x")), "");
}

#[test]
fn a_child_is_found_by_key_or_label_from_above_only() {
    let roster = family();
    #[track_caller]
    fn check(roster: &Roster, key: Option<&str>, label: Option<&str>, parent: &str, expected: &str) {
        let found = roster.find(key, label, Some(&session(parent)));
        let found = found.map_or_else(|error| error.to_string(), |key| key.to_string());
        assert!(found.starts_with(expected), "{found}");
    }
    let (a, b) = (Some("agent:worker:a"), Some("agent:worker:b"));
    check(&roster, a, None, "", "agent:worker:a");
    check(&roster, None, Some("first"), "", "agent:worker:a");
    check(&roster, None, Some("SECOND"), "", "agent:worker:b");
    check(&roster, b, None, "a", "agent:worker:b");
    check(&roster, a, Some("first"), "", "give exactly one of agent_key and label");
    check(&roster, None, None, "", "give exactly one of agent_key and label");
    // Neither itself nor those beside or above it.
    check(&roster, a, None, "a", r#"there is no child "agent:worker:a"; known: "#);
    check(&roster, a, None, "d", r#"there is no child "agent:worker:a"; known: "#);
    check(&roster, None, Some("first"), "b", r#"there is no child "first"; known: "#);
    check(
        &roster,
        Some("a"),
        None,
        "",
        r#"there is no child "a"; known: First, second, agent:worker:c, agent:worker:d"#,
    );
    check(
        &roster,
        None,
        Some("third"),
        "",
        r#"there is no child "third"; known: First, second, agent:worker:c, agent:worker:d"#,
    );
    check(&Roster::default(), a, None, "", r#"there is no child "agent:worker:a"; known: none"#);
}

#[test]
fn a_child_has_one_turn_at_a_time_and_remembers() {
    let (roster, a) = (family(), key("a"));
    let said = |text: &str| Arc::new(Message::user(text));
    let busy =
        "agent:worker:a is still running, so nothing was sent; send with mode steer or interrupt, or later";
    assert_eq!(roster.resume(&a, at(2), None).unwrap_err().to_string(), busy);

    roster.leave(&a, &[said("one")], at(3));
    assert_eq!((roster.list(None)[0].status, roster.list(None)[0].last_activity), (ChildStatus::Idle, at(3)));
    let seat = roster.resume(&a, at(4), Some("call-9".into())).unwrap();
    assert_eq!(seat.history, [said("one")]);
    assert_eq!((seat.source.turn, seat.source.parent_tool_call_id), (2, Some("call-9".into())));
    assert_eq!((seat.source.agent_key, seat.source.session_id), (a.clone(), session("a")));
    let now = &roster.list(None)[0];
    assert_eq!((now.status, now.turns, now.last_activity), (ChildStatus::Running, 2, at(4)));
    assert_eq!(roster.resume(&a, at(5), None).unwrap_err().to_string(), busy);

    roster.leave(&a, &[said("two")], at(6));
    let seat = roster.resume(&a, at(7), None).unwrap();
    assert_eq!((seat.source.turn, seat.history), (3, vec![said("one"), said("two")]));
}

#[test]
fn an_unknown_child_is_not_resumed_and_does_not_leave() {
    let roster = Roster::default();
    let error = roster.resume(&key("x"), at(1), None).unwrap_err();
    assert_eq!(error.to_string(), r#"there is no child "agent:worker:x"; known: none"#);
    roster.leave(&key("x"), &[], at(1));
    assert_eq!(keys(&roster, None), "");
}

#[test]
fn a_child_is_found_by_its_session() {
    let roster = family();
    let found = |name: &str| roster.source(&session(name)).map(|source| source.path.to_string());
    assert_eq!(found("b").as_deref(), Some("s/a/b"));
    assert_eq!((found(""), found("unknown")), (None, None), "the root is no child");
    roster.close(&key("b"));
    assert!(found("b").is_some(), "its children may still be running");
}
