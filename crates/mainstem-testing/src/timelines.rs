//! Timelines that tests have checked, kept for a reducer in another language:
//! `ui/test/fleet.test.ts` computes the same states.

use std::{
    collections::HashMap,
    env, fs,
    path::{Path, PathBuf},
    sync::{Mutex, OnceLock, PoisonError},
    thread,
};

use mainstem_event::{AgentEvent, FleetState};
use serde_json::Value;

/// Names the folder; without it, nothing is kept.
const FOLDER: &str = "MAINSTEM_TIMELINES";

/// A test of random timelines has thousands.
const MOST_OF_A_TEST: usize = 40;

/// A longer timeline is not kept: the state after each of its events is computed.
const LONGEST: usize = 2_000;

/// Keeps a timeline: a line for each event, with a hash of the state of the fleet after it.
pub(crate) fn keep(events: &[AgentEvent]) {
    static PLACE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let Some(place) = PLACE.get_or_init(|| env::var_os(FOLDER).map(PathBuf::from)) else { return };
    if events.is_empty() || events.len() > LONGEST || !has_room() {
        return;
    }
    let mut fleet = FleetState::default();
    let mut text = String::new();
    for event in events {
        fleet.apply(event);
        let state = serde_json::to_value(&fleet).map(|state| sorted(&state).to_string()).unwrap_or_default();
        text += &format!("{:08x} {}\n", hash(&state), event.to_json());
    }
    write(place, &text);
}

/// Counts the timelines of a test, whose thread has its name.
fn has_room() -> bool {
    static KEPT: Mutex<Option<HashMap<String, usize>>> = Mutex::new(None);
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let name = thread::current().name().unwrap_or_default().to_owned();
    let count = kept.get_or_insert_default().entry(name).or_default();
    *count += 1;
    *count <= MOST_OF_A_TEST
}

#[expect(
    clippy::expect_used,
    reason = "the folder is for this, and a lost timeline is one that is not checked"
)]
fn write(place: &Path, text: &str) {
    let name = format!("{:08x}{:08x}.txt", hash(text), text.len());
    fs::create_dir_all(place).and_then(|()| fs::write(place.join(name), text)).expect("the timeline is kept");
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
