//! Names of twins, of grandchildren, and of children whose parents are not shown.

use mainstem_event::{Origin, Timestamp};

use super::*;

fn source(id: &str, session: &str, parent: &str, path: &str) -> EventSource {
    EventSource {
        agent_key: format!("agent:{id}:{session}").parse().unwrap(),
        agent_id: id.into(),
        agent_name: None,
        label: None,
        session_id: session.parse().unwrap(),
        parent_session_id: parent.parse().unwrap(),
        depth: 1,
        path: path.into(),
        task_id: None,
        turn: 1,
        parent_tool_call_id: None,
        stream_id: 1,
    }
}

/// Returns the names of all agents after the last event.
fn check(sources: &[EventSource], expected: &[&str]) {
    let mut names = Names::default();
    for source in sources {
        let origin =
            Origin { source: Some(source.clone().into()), ..Origin::session("s".parse().unwrap(), None) };
        let kind = EventKind::Custom { name: String::new(), value: 1.into() };
        names.event(&AgentEvent::new(1, Timestamp::default(), origin.into(), kind));
    }
    let shown: Vec<_> = sources.iter().map(|source| names.path(Some(source)).join(" › ")).collect();
    assert_eq!(shown, expected);
}

#[test]
fn twins_have_numbers_and_others_have_none() {
    check(
        &[
            source("a", "1", "s", "s/a"),
            source("b", "2", "s", "s/b"),
            source("a", "3", "s", "s/a"),
            source("b", "4", "3", "s/a/b"),
        ],
        &["main › a#1", "main › b", "main › a#2", "main › a#2 › b"],
    );
}

#[test]
fn parents_that_were_filtered_out_are_named_by_the_path() {
    check(&[source("c", "9", "8", "s/a/b/c")], &["main › a › b › c"]);
}
