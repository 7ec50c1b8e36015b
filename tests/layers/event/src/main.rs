//! A program over `mainstem-event` alone: events of a log, as lines of JSON, and read back.

use mainstem_event::{AgentEvent, EventKind, SessionLog, fold};

fn main() {
    // A program that follows an agent holds a cursor of its session's log.
    let log = SessionLog::new("session-1".parse().expect("an id"));
    let mut reader = log.subscribe();
    for part in ["Rome ", "it is."] {
        log.emit(EventKind::TextBlockDelta {
            block_id: "block-1".parse().expect("an id"),
            delta: part.into(),
        });
    }

    // Each event is a line of JSON, and is read back equal: numbered and stamped by the log alone.
    let lines: Vec<_> = std::iter::from_fn(|| reader.try_next())
        .map(|event| serde_json::to_string(&event).expect("JSON"))
        .collect();
    let events: Vec<AgentEvent> =
        lines.iter().map(|line| serde_json::from_str(line).expect("an event")).collect();
    assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2]);

    let text: String = events.iter().filter_map(delta).collect();
    assert_eq!(text, "Rome it is.");
    // No invocation has begun, so the fold has none.
    assert!(fold::fold(&events).is_empty());
}

fn delta(event: &AgentEvent) -> Option<&str> {
    match &event.kind {
        EventKind::TextBlockDelta { delta, .. } => Some(delta),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_program_runs() {
        super::main();
    }
}
