//! A run as text that a person can read and a test can pin.

use std::fmt::Write as _;

use futures_util::{Stream, StreamExt};
use mainstem_event::{AgentEvent, EventKind};

use crate::laws;

/// Reads a stream to its end, checks its [`laws`], and prints it: one event a line, indented by
/// depth.
///
/// ```
/// use mainstem_testing::{event::{EventKind, SessionLog}, timeline};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let log = SessionLog::new("session-1".parse().expect("an id"));
/// let mut reader = log.subscribe();
/// log.emit(EventKind::Custom { name: "step".into(), value: 1.into() });
/// let events: Vec<_> = std::iter::from_fn(|| reader.try_next()).collect();
/// let text = timeline(futures_util::stream::iter(events)).await;
/// assert!(text.contains("CUSTOM"));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
/// If a law is broken; the message has the timeline and the law.
pub async fn timeline(stream: impl Stream<Item = AgentEvent>) -> String {
    let events: Vec<_> = stream.collect().await;
    let text = render(&events);
    if let Err(broken) = laws(&events) {
        panic!("{broken}\n\n{text}");
    }
    text
}

/// Prints events: milliseconds since the first, source, and event. Consecutive deltas of one block
/// are joined, with their number.
pub fn render(events: &[AgentEvent]) -> String {
    let mut text = String::new();
    let Some(first) = events.first() else { return text };
    let mut rest = events.iter().peekable();
    while let Some(event) = rest.next() {
        let mut kind = event.kind.clone();
        let mut count = 1;
        while let Some(joined) = rest.peek().and_then(|next| join(&kind, next, event)) {
            (kind, count) = (joined, count + 1);
            rest.next();
        }
        let times = if count > 1 { format!(" ×{count}") } else { String::new() };
        let indent = "  ".repeat(usize::from(event.depth()));
        let time = event.at.millis_since(first.at);
        let _ = writeln!(text, "{time:>5} {indent}{} {kind}{times}", who(event));
    }
    text
}

/// Returns a short name of an instance: the last part of its key, and its turn after the first.
fn who(event: &AgentEvent) -> String {
    let Some(source) = event.source() else { return event.agent_id().to_owned() };
    let key = source.agent_key.as_str();
    let instance = key.rsplit(':').next().unwrap_or(key);
    let task = source.task_id.as_ref().map_or_else(String::new, |task| format!("@{task}"));
    let turn = if source.turn > 1 { format!(" turn {}", source.turn) } else { String::new() };
    format!("{}#{instance}{task}{turn}", source.agent_id)
}

/// Joins two deltas of one block.
fn join(kind: &EventKind, next: &AgentEvent, first: &AgentEvent) -> Option<EventKind> {
    use EventKind::{TextBlockDelta, ThinkingBlockDelta};
    if next.origin != first.origin {
        return None;
    }
    match (kind, &next.kind) {
        (TextBlockDelta { block_id, delta }, TextBlockDelta { block_id: same, delta: more })
            if block_id == same =>
        {
            Some(TextBlockDelta { block_id: block_id.clone(), delta: format!("{delta}{more}") })
        }
        (ThinkingBlockDelta { block_id, delta }, ThinkingBlockDelta { block_id: same, delta: more })
            if block_id == same =>
        {
            Some(ThinkingBlockDelta { block_id: block_id.clone(), delta: format!("{delta}{more}") })
        }
        _ => None,
    }
}
