//! The streams of other protocols keep these protocols' own laws, whatever a fleet does.

mod table;

use std::collections::{BTreeMap, BTreeSet};

use mainstem::{
    encode::{
        Encoder, Fleet,
        agent_protocol::{AgentProtocol, Detail, EventType, Status, TaskEvent},
    },
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

/// Checks the laws of AgentScope's tasks: numbers ascend; `RUN_STARTED` is first; the end is last,
/// once; a call begins before it ends, and ends before its result. What begins a task or a call may
/// be lost in a gap.
pub(crate) fn check_tasks(events: &[AgentEvent]) -> Result<(), String> {
    let has_gap = events.iter().any(|event| matches!(event.kind, EventKind::Gap { .. }));
    for detail in [Detail::Status, Detail::Full, Detail::Verbose] {
        let mut encoder = AgentProtocol::new("t").with_detail(detail);
        let all: Vec<_> = events.iter().flat_map(|event| encoder.events(event)).collect();
        check_task(&all, has_gap).map_err(|what| format!("{detail:?}: {what}"))?;
    }
    Ok(())
}

fn check_task(events: &[TaskEvent], has_gap: bool) -> Result<(), String> {
    let is_first = |event: &TaskEvent| event.kind == EventType::RunStarted;
    let is_end = |event: &TaskEvent| {
        let status = event.status.as_deref().map(Status::from);
        event.kind == EventType::RunError
            || event.kind == EventType::Status && status.is_some_and(Status::is_over)
    };
    let at = |is_it: &dyn Fn(&TaskEvent) -> bool| -> Vec<_> {
        events.iter().enumerate().filter(|(_, event)| is_it(event)).map(|(at, _)| at).collect()
    };
    let (firsts, ends) = (at(&is_first), at(&is_end));
    let begins = firsts == [0] || (has_gap && firsts.is_empty());
    if !begins || ends != [events.len() - 1] {
        return Err(format!("it begins at {firsts:?}, and ends at {ends:?} of {}", events.len()));
    }
    if let Some(pair) = events.windows(2).find(|pair| pair[0].seq > pair[1].seq) {
        return Err(format!("{} is behind {}", pair[1].seq, pair[0].seq));
    }
    let mut stages = BTreeMap::new();
    for event in events {
        let stage = match event.kind {
            EventType::ToolCallStart => 1,
            EventType::ToolCallEnd => 2,
            EventType::ToolResult => 3,
            _ => continue,
        };
        let call = event.tool_call_id.clone().ok_or_else(|| format!("{event:?} has no call"))?;
        let before = stages.insert(call, stage).unwrap_or(0);
        if before >= stage || (stage == 2 && before != 1 && !has_gap) {
            return Err(format!("{event:?} is behind stage {before}"));
        }
    }
    Ok(())
}

/// The row of a kind, or of those that begin like it.
#[test]
fn the_book_says_of_each_kind_what_a_protocol_gets() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/book/src/protocols.md");
    let text = std::fs::read_to_string(path).unwrap();
    let first = |line: &str| line.strip_prefix("| ")?.split(" | ").next().map(str::to_owned);
    let rows: String = text.lines().filter_map(first).collect::<Vec<_>>().join("\n");
    let lacking = EventKind::NAMES.iter().filter(|name| {
        let family = name.rsplit_once("_BLOCK_").map(|(family, _)| format!("`{family}_BLOCK_*`"));
        let family =
            family.or_else(|| Some(format!("`{}*`", name.split_inclusive('_').take(2).collect::<String>())));
        !rows.contains(&format!("`{name}`")) && !family.is_some_and(|family| rows.contains(&family))
    });
    assert_eq!(lacking.collect::<Vec<_>>(), <Vec<&&str>>::new(), "{path} has no row of them");
}
