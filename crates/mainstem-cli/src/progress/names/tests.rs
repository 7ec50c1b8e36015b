//! Names of twins, with and without labels.

use mainstem::message::Role;
use mainstem_event::{Origin, Timestamp};

use super::*;

fn source(id: &str, session: &str, parent: &str, path: &str) -> EventSource {
    EventSource {
        agent_key: format!("agent:{id}:{session}").parse().unwrap(),
        agent_id: id.into(),
        agent_name: None,
        label: None,
        title: None,
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
fn check(starts: &[(EventSource, &str)], expected: &[&str]) {
    let mut names = Names::default();
    let titled = |(source, task): &(EventSource, &str)| {
        let title = EventSource::title_of(source.label.as_deref(), task);
        EventSource { title, ..source.clone() }
    };
    let starts: Vec<_> = starts.iter().map(titled).collect();
    for source in &starts {
        let origin =
            Origin { source: Some(source.clone().into()), ..Origin::session("s".parse().unwrap(), None) };
        let kind = EventKind::agent_start(&*source.agent_id, Role::Assistant, Vec::new());
        names.event(&AgentEvent::new(1, Timestamp::default(), origin.into(), kind));
    }
    let shown: Vec<_> = starts.iter().map(|source| names.of(Some(source))).collect();
    let shown: Vec<_> = shown.iter().map(|name| format!("{} {}", name.id, name.about)).collect();
    assert_eq!(shown, expected);
}

fn labelled(label: &str, source: EventSource) -> EventSource {
    EventSource { label: Some(label.into()), ..source }
}

#[test]
fn a_label_or_the_task_tells_twins_apart() {
    check(
        &[
            (source("a", "1", "s", "s/a"), "Compare  Paris\nand Rome by their size"),
            (labelled("first", source("b", "2", "s", "s/b")), "Do it"),
            (source("a", "3", "s", "s/a"), "Compare Paris and Oslo"),
            (source("b", "4", "3", "s/a/b"), ""),
            (labelled("second", source("b", "5", "s", "s/b")), "Do it"),
            (source("c", "6", "s", "s/c"), "https://example.com/a/long/address"),
        ],
        &[
            "a#1 Compare Paris and Rome",
            "b first",
            "a#2 Compare Paris and Oslo",
            "b ",
            "b second",
            "c https://example.com/a/lo",
        ],
    );
}

#[test]
fn the_root_has_its_name() {
    assert_eq!(Names::default().of(None).id, "main");
    let unknown = source("x", "9", "8", "s/x");
    assert_eq!(Names::default().of(Some(&unknown)), Name { id: "x".to_owned(), about: String::new() });
}
