//! Law 5: depth, path and session say where an agent is, and agree.

use std::collections::HashMap;

use mainstem_message::SessionId;

use super::{Invocation, Violation};

pub(super) fn check(all: &[Invocation<'_>]) -> Result<(), Violation> {
    // What is known of each session: its agent's depth and path.
    let mut sessions: HashMap<&SessionId, (u16, &str)> = HashMap::new();
    let mut streams: HashMap<u64, u64> = HashMap::new();
    for one in all {
        let first = one.events[0];
        let broken = |message: String| Err(Violation::new(5, one.start(), message));
        let Some(source) = one.source else {
            sessions.insert(first.session_id(), (0, first.session_id().as_str()));
            continue;
        };
        let Some((depth, path)) = sessions.get(&source.parent_session_id) else {
            return broken(format!("session {} was not seen before", source.parent_session_id));
        };
        if source.depth != depth + 1 || *source.path != format!("{path}/{}", source.agent_id) {
            return broken(format!(
                "{} at depth {} is not below {path} at {depth}",
                source.path, source.depth
            ));
        }
        if let Some(other) = streams.insert(source.stream_id, one.start()) {
            return broken(format!("stream {} began at {other} already", source.stream_id));
        }
        if one.events.iter().any(|event| !same_place(event.origin.source.as_deref(), source)) {
            return broken(format!("{} changes its place", source.agent_key));
        }
        sessions.insert(&source.session_id, (source.depth, &source.path));
    }
    Ok(())
}

/// Only the task may change on the way.
fn same_place(is: Option<&mainstem_event::EventSource>, was: &mainstem_event::EventSource) -> bool {
    is.is_some_and(|is| mainstem_event::EventSource { task_id: was.task_id.clone(), ..is.clone() } == *was)
}
