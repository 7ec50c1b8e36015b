//! A run for tests: the demo on a paused clock; each event has the same time in every run.

use futures_util::StreamExt;
use mainstem::Harness;
use mainstem_event::AgentEvent;
use mainstem_testing::{CountedIds, FakeClock};

use crate::demo;

/// Returns the demo's events.
pub(crate) fn demo() -> Vec<AgentEvent> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let harness = Harness::builder("main", demo::model(1.0))
            .with_clock(FakeClock::default())
            .with_ids(CountedIds::default());
        let harness = demo::configure(harness, 1.0).build().unwrap();
        harness.stream_events(demo::PROMPT).collect().await
    })
}

/// Collects what a function yields; it is called at each event, and ten times a second between
/// events.
pub(super) fn play(mut at: impl FnMut(Option<&AgentEvent>, mainstem_event::Timestamp)) {
    let events = demo();
    let mut now = events[0].at.as_micros();
    for event in &events {
        while now + 100_000 < event.at.as_micros() {
            now += 100_000;
            at(None, mainstem_event::Timestamp::from_micros(now));
        }
        at(Some(event), event.at);
    }
}
