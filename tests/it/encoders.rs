//! The streams of other protocols keep these protocols' own laws, whatever a fleet does.

use std::collections::{BTreeMap, BTreeSet};

use mainstem::{
    encode::{Encoder, Fleet},
    prelude::*,
};
use serde_json::Value;

/// Returns the kinds and the data of server-sent events.
fn frames(encoder: &mut impl Encoder, events: &[AgentEvent]) -> Vec<(String, Value)> {
    let bytes: Vec<_> = events.iter().flat_map(|event| encoder.event(event)).collect();
    let text = String::from_utf8(bytes).unwrap();
    let field = |frame: &str, name: &str| -> Option<String> {
        frame.lines().find_map(|line| Some(line.strip_prefix(name)?.to_owned()))
    };
    let frame = |frame: &str| {
        let data = serde_json::from_str(&field(frame, "data: ")?).unwrap();
        Some((field(frame, "event: ").unwrap_or_default(), data))
    };
    text.split("\n\n").filter_map(frame).collect()
}

/// Checks the laws of Arbiter's streams: `request_received` is first and `done` last, each once; a
/// stream has one beginning before and one end after all else of it; texts are whole.
pub(crate) fn check_fleet(events: &[AgentEvent]) -> Result<(), String> {
    let frames = frames(&mut Fleet::new(), events);
    let kinds: Vec<_> = frames.iter().map(|(kind, _)| kind.as_str()).collect();
    let once = |kind: &str, place: usize| {
        let places: Vec<_> =
            kinds.iter().enumerate().filter(|(_, one)| **one == kind).map(|(at, _)| at).collect();
        if places == [place] { Ok(()) } else { Err(format!("{kind} is at {places:?} of {kinds:?}")) }
    };
    once("request_received", 0)?;
    once("done", kinds.len() - 1)?;
    let (mut open, mut over) = (BTreeSet::new(), BTreeSet::new());
    let of_streams = frames[1..frames.len() - 1].iter().filter(|(kind, _)| kind != "gap");
    for (kind, data) in of_streams {
        let stream = data["stream_id"].as_u64().ok_or_else(|| format!("{kind} has no stream: {data}"))?;
        let is_lawful = match kind.as_str() {
            "stream_start" => !over.contains(&stream) && open.insert(stream),
            "stream_end" => open.remove(&stream) && over.insert(stream),
            _ => open.contains(&stream),
        };
        if !is_lawful {
            return Err(format!("{kind} of stream {stream} comes at the wrong time: {kinds:?}"));
        }
    }
    if open.is_empty() { same_texts(events, &frames) } else { Err(format!("{open:?} are left open")) }
}

/// Checks that each stream has the texts of its invocation, those that the gate withholds included
/// and without those that are taken back.
fn same_texts(events: &[AgentEvent], frames: &[(String, Value)]) -> Result<(), String> {
    let (mut said, mut shown) = (BTreeMap::<u64, String>::new(), BTreeMap::<u64, String>::new());
    let mut settled = BTreeMap::<u64, usize>::new();
    for event in events {
        let stream = event.source().map_or(0, |source| source.stream_id);
        let said = said.entry(stream).or_default();
        match &event.kind {
            EventKind::TextBlockDelta { delta, .. } => *said += delta,
            EventKind::ModelCallStart { .. } => _ = settled.insert(stream, said.len()),
            kind if kind.taken_back().is_some() => said.truncate(settled[&stream]),
            _ => {}
        }
    }
    for (kind, data) in frames {
        let shown = data["stream_id"].as_u64().map(|stream| shown.entry(stream).or_default());
        match (kind.as_str(), shown) {
            ("text", Some(shown)) => {
                *shown += data.get("withheld").unwrap_or_else(|| &data["delta"]).as_str().unwrap();
            }
            ("text_discarded", Some(shown)) => {
                let discarded = data["characters"].as_u64().unwrap();
                (0..discarded).for_each(|_| _ = shown.pop());
            }
            _ => {}
        }
    }
    shown.retain(|_, text| !text.is_empty());
    said.retain(|_, text| !text.is_empty());
    let has_gap = frames.iter().any(|(kind, _)| kind == "gap");
    if said == shown || has_gap { Ok(()) } else { Err(format!("{shown:?} is shown, not {said:?}")) }
}
