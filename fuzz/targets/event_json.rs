//! Events as JSON: what is read is written back equal, and every fold takes it.

use mainstem::event::{AgentEvent, Diagnostics, FleetState};

use crate::{fuzz, input::Input};

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

#[test]
fn event_json() {
    fuzz!("event_json", check);
}
