//! Events that are too large for a stream, whose texts are cut.

use mainstem::event::AgentEvent;
use serde_json::{Value, json};

/// The largest event in a stream, in bytes of JSON.
pub(crate) const MAX: usize = 256 << 10;

/// A text is not cut to less than this, in bytes.
const LEAST: usize = 64;

/// The end of a text that was cut.
const CUT: &str = "…";

/// Returns an event as JSON. The texts of a large one are cut; its `truncated` has the size of the
/// whole event, and the path to it if a prefix is given.
pub(crate) fn json(event: &AgentEvent, prefix: Option<&str>) -> String {
    let whole = event.to_json();
    if whole.len() <= MAX {
        return whole;
    }
    let Ok(mut value) = serde_json::from_str::<Value>(&whole) else { return whole };
    value["truncated"] = json!({ "bytes": whole.len() });
    if let Some(prefix) = prefix {
        let href = format!("{prefix}/v1/sessions/{}/events/{}", event.origin.session_id, event.seq);
        value["truncated"]["href"] = href.into();
    }
    let mut longest = MAX / 2;
    loop {
        let parts = value.as_object_mut().into_iter().flatten();
        parts.filter(|(name, _)| !ENVELOPE.contains(&&***name)).for_each(|(_, part)| shorten(part, longest));
        let short = value.to_string();
        if short.len() <= MAX || longest == 0 {
            return short;
        }
        longest /= 2;
    }
}

/// The fields that identify an event and its producer, which are never cut.
const ENVELOPE: [&str; 9] =
    ["type", "seq", "id", "sessionId", "runId", "createdAt", "source", "replyId", "truncated"];

/// Cuts long texts, and lists once texts are as short as they can be.
fn shorten(value: &mut Value, longest: usize) {
    match value {
        Value::String(text) if text.len() > longest.max(LEAST) + CUT.len() => {
            text.truncate(text.floor_char_boundary(longest.max(LEAST)));
            text.push_str(CUT);
        }
        Value::Array(items) if longest < LEAST && items.len() > 1 => items.truncate(items.len() / 2),
        Value::Array(items) => items.iter_mut().for_each(|item| shorten(item, longest)),
        Value::Object(fields) => fields.values_mut().for_each(|field| shorten(field, longest)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    //! What is cut, and what stays.

    use super::*;

    fn event(text: &str) -> AgentEvent {
        let value = json!({ "type": "CUSTOM", "seq": 7, "sessionId": "s", "createdAt": "2026-11-22T10:00:00Z",
            "name": "n", "value": { "long": text, "short": "stays", "many": vec![text; 3] } });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_large_event_says_where_it_is_whole() {
        let small = event("é");
        assert_eq!(json(&small, Some("")), small.to_json());
        let large = event(&"é".repeat(100_000));
        let text = json(&large, Some("/agents"));
        assert!(text.len() <= MAX && text.len() > MAX / 8, "{}", text.len());
        let short: Value = serde_json::from_str(&text).unwrap();
        let truncated = json!({ "bytes": large.to_json().len(), "href": "/agents/v1/sessions/s/events/7" });
        assert_eq!((&short["truncated"], &short["value"]["short"]), (&truncated, &json!("stays")));
        assert!(short["value"]["long"].as_str().unwrap().ends_with("é…"));
        // An event of many short texts fits as well, and keeps its producer.
        let many: Vec<_> = (0..20_000).map(|n| format!("some text number {n}")).collect();
        let agent = format!("agent:kid:{}", "k".repeat(80));
        let listed = json!({ "type": "CUSTOM", "seq": 7, "sessionId": "s", "createdAt": "2026-11-22T10:00:00Z",
            "name": "n", "value": many, "replyId": agent });
        let text = json(&serde_json::from_value(listed).unwrap(), None);
        assert!(text.len() <= MAX && text.contains(&agent), "{}", text.len());
        // It can still be read as an event.
        assert_eq!(serde_json::from_value::<AgentEvent>(short).unwrap().seq, 7);
    }
}
