//! Events as JSON: what is read is written back equal, and every fold takes it.

use std::sync::Arc;

use mainstem::event::{AgentEvent, Diagnostics, EventKind, FleetState, Origin, Timestamp};

use crate::{corpus, fuzz, input::Input};

/// The events of lines of JSON; other lines are passed over.
fn events(bytes: &[u8]) -> impl Iterator<Item = AgentEvent> {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

fn check(input: &Input) {
    let mut fleet = FleetState::default();
    let mut diagnostics = Diagnostics::default();
    for event in events(&input.bytes) {
        let written = serde_json::to_string(&event).unwrap();
        let again: AgentEvent =
            serde_json::from_str(&written).unwrap_or_else(|error| panic!("{error}: {written}"));
        assert_eq!(again, event, "{written}");
        assert_eq!(serde_json::to_string(&again).unwrap(), written);
        assert!(!event.to_string().contains('\n'), "one line for people: {event}");
        fleet.apply(&event);
        diagnostics.apply(&event);
    }
    serde_json::to_string(&fleet).unwrap();
    serde_json::to_string(&diagnostics).unwrap();
}

/// Returns an event of each kind.
fn examples() -> Vec<(String, Vec<u8>)> {
    let origin = Arc::new(Origin::session("s".parse().unwrap(), None));
    let kinds = EventKind::examples().into_iter();
    let named = kinds.map(|kind| {
        let name = kind.name().to_owned();
        (name, AgentEvent::new(1, Timestamp::default(), origin.clone(), kind).to_json().into_bytes())
    });
    named.collect()
}

#[test]
fn event_json() {
    fuzz!([corpus::read("event_json"), examples()].concat(), check);
}
