//! The state of a fleet after every event of some timelines, as the reducer of the page reads it:
//! `ui/test/fleet.test.ts` computes the same states from the same files.
#![expect(clippy::unwrap_used, reason = "a test says what it found by failing")]

use std::{fs, path::PathBuf};

use mainstem_event::{AgentEvent, FleetState};
use serde_json::{Value, json};

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// Returns a line for each event, with its number and a hash of the state after it, and the last
/// state as a whole.
fn states(timeline: &str) -> String {
    let mut fleet = FleetState::default();
    let mut lines = String::new();
    for line in timeline.lines() {
        let event: AgentEvent = serde_json::from_str(line).unwrap();
        fleet.apply(&event);
        let state = sorted(&serde_json::to_value(&fleet).unwrap());
        lines += &format!("{} {:08x}\n", event.seq, hash(&state.to_string()));
    }
    lines + &serde_json::to_string_pretty(&fleet).unwrap()
}

/// Sorts the keys of all objects.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> =
                fields.iter().map(|(name, value)| (name.clone(), sorted(value))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        _ => value.clone(),
    }
}

/// FNV-1a with 32 bits.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

fn read(name: &str) -> String {
    fs::read_to_string(folder("timelines").join(format!("{name}.ndjson"))).unwrap()
}

/// A run of the demo, as a server has recorded it.
#[test]
fn a_recorded_run() {
    insta::assert_snapshot!(states(&read("demo")));
}

/// A session with approvals, a refusal, messages, cancels, a compaction and a cancelled run.
#[test]
fn a_steered_session() {
    insta::assert_snapshot!(states(&read("steered")));
}

/// Events of all kinds in any order, from agents that come and go.
#[test]
fn a_random_session() {
    let timeline = random(600);
    insta::assert_snapshot!("random", timeline);
    insta::assert_snapshot!(states(&timeline));
}

/// A linear congruential generator: the timeline is the same on every machine.
struct Random(u32);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) as usize % most
    }

    fn one_of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

fn random(count: usize) -> String {
    let mut files: Vec<_> =
        fs::read_dir(folder("wire")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let kinds: Vec<Value> =
        files.iter().map(|file| serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()).collect();
    let mut random = Random(1);
    let mut seq = 0;
    let lines = (0..count).map(|_| {
        // Some events come twice, and some are missing.
        seq += [0, 1, 1, 1, 1, 1, 1, 3][random.below(8)].max(u64::from(seq == 0));
        event(&mut random, &kinds, seq).to_string() + "\n"
    });
    lines.collect()
}

fn event(random: &mut Random, kinds: &[Value], seq: u64) -> Value {
    let mut event = random.one_of(kinds).clone();
    event["seq"] = seq.into();
    event["id"] = format!("session-0193a5c1.{seq}").into();
    if event.get("delta").is_some() {
        // Long texts of one to four bytes a character are cut at a character.
        event["delta"] =
            random.one_of(&["a word ", "größer ", "長い文章 ", "🦀🦀 "]).repeat(random.below(200)).into();
    }
    for (name, ids) in [("toolCallId", ["call-1", "call-2"]), ("confirmId", ["confirm-1", "confirm-2"])] {
        if event.get(name).is_some() {
            event[name] = (*random.one_of(&ids)).into();
        }
    }
    if event.get("replyId").is_some() {
        with_agent(random, &mut event);
    }
    event
}

fn with_agent(random: &mut Random, event: &mut Value) {
    let agent = random.below(5);
    let turn = 1 + random.below(2);
    event["replyId"] = format!("reply-{agent}-{turn}").into();
    if agent == 0 {
        event.as_object_mut().unwrap().remove("source");
        return;
    }
    event["source"] = json!({
        "agentKey": format!("agent:worker:{agent}"), "agentId": "worker", "sessionId": format!("sub-{agent}"),
        "parentSessionId": "session-0193a5c1", "depth": 1, "path": "session-0193a5c1/worker", "turn": turn,
        "streamId": agent,
    });
    if random.below(3) == 0 {
        event["source"]["taskId"] = format!("task-{agent}").into();
    }
}
