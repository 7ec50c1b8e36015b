//! The fleet after an earlier event, from the states that were passed on the way to later ones.

use std::sync::Arc;

use futures_util::StreamExt;
use mainstem_event::{EventKind, FleetState, SessionLog};
use tokio::sync::Mutex;

/// The first distance between two states, in events.
const EVERY: u64 = 8192;

/// The maximum number of states. Then every second one is dropped, and the distance doubles.
const MAX: usize = 32;

/// As many events are read without a look for a later state.
const FEW: u64 = 128;

/// The states of one log, in order.
pub(crate) struct Moments(Mutex<States>);

struct States {
    every: u64,
    all: Vec<FleetState>,
    /// The latest one that was asked for, for a caller that asks again and again.
    latest: FleetState,
}

impl Default for Moments {
    fn default() -> Self {
        Self(Mutex::new(States { every: EVERY, all: Vec::new(), latest: FleetState::default() }))
    }
}

impl Moments {
    /// Returns the state after an event, or `None` if the log has no such event that is committed.
    /// Reads at most the events between two states, but for those that were not read before. If
    /// there are many of them, `known` may have a state of any event.
    ///
    /// Dropping the future stops reading; the states that were passed stay.
    pub(crate) async fn at(
        &self,
        log: &Arc<SessionLog>,
        seq: u64,
        known: impl AsyncFnOnce() -> Option<FleetState>,
    ) -> Option<FleetState> {
        if seq == 0 {
            return Some(FleetState::default());
        }
        if seq > log.last_seq() || !log.until_committed(seq).await {
            return None;
        }
        let mut states = self.0.lock().await;
        let mut fleet = states.before(seq);
        if seq - fleet.seq > FEW {
            let known = known().await.filter(|known| (fleet.seq..=seq).contains(&known.seq));
            fleet = known.unwrap_or(fleet);
        }
        let mut events = log.committed_from(fleet.seq + 1);
        while fleet.seq < seq {
            let event = events.next().await?;
            // The event, and those before it, were deleted; a gap that reaches beyond it says so.
            if event.seq > seq && !matches!(event.kind, EventKind::Gap { .. }) {
                break;
            }
            fleet.apply(&event);
            states.pass(&fleet);
        }
        if states.latest.seq <= fleet.seq {
            states.latest.clone_from(&fleet);
        }
        Some(fleet)
    }
}

impl States {
    /// Returns the latest state that is not after an event.
    fn before(&self, seq: u64) -> FleetState {
        let after = self.all.partition_point(|state| state.seq <= seq);
        let passed = after.checked_sub(1).map(|index| &self.all[index]);
        let latest = Some(&self.latest).filter(|latest| latest.seq <= seq);
        passed.into_iter().chain(latest).max_by_key(|state| state.seq).cloned().unwrap_or_default()
    }

    /// Keeps a state if it is far enough from the last one.
    fn pass(&mut self, state: &FleetState) {
        let last = self.all.last().map_or(0, |last| last.seq);
        if state.seq < last.saturating_add(self.every) {
            return;
        }
        self.all.push(state.clone());
        if self.all.len() == MAX {
            self.every *= 2;
            let mut is_first = false;
            self.all.retain(|_| {
                is_first = !is_first;
                !is_first
            });
        }
    }
}

#[cfg(test)]
mod tests {
    //! The state after each event is that of a fold from the first one.

    use futures_util::FutureExt;

    use super::*;

    /// A log of this many events: invocations of the root.
    fn log_of(count: u64) -> Arc<SessionLog> {
        let log = SessionLog::new("s".parse().unwrap());
        for number in 0..count {
            log.emit(EventKind::Custom { name: "step".into(), value: number.into() });
        }
        log
    }

    #[tokio::test]
    async fn each_state_is_that_of_a_fold() {
        const LAST: u64 = 1000;
        let log = log_of(LAST);
        let mut expected = vec![FleetState::default()];
        let mut events = log.recent_from(1);
        while let Some(event) = events.try_next() {
            let mut next = expected[expected.len() - 1].clone();
            next.apply(&event);
            expected.push(next);
        }
        let latest = FleetState::default();
        let moments = Moments(Mutex::new(States { every: 3, all: Vec::new(), latest }));
        // Backwards and forwards: states are used that a later event has left.
        for seq in (0..=LAST).rev().step_by(7).chain(0..=LAST) {
            let state = moments.at(&log, seq, async || None).await.unwrap();
            assert_eq!(state, expected[usize::try_from(seq).unwrap()], "{seq}");
        }
        let states = moments.0.lock().await;
        assert!(states.all.len() < MAX, "{}", states.all.len());
        assert!(states.every > 3 && states.all.windows(2).all(|two| two[0].seq < two[1].seq));
        drop(states);
        assert_eq!(moments.at(&log, LAST + 1, async || None).now_or_never().unwrap(), None);
    }

    #[tokio::test]
    async fn a_state_that_is_known_is_used_for_later_events_and_no_earlier_ones() {
        let log = log_of(1000);
        let mut known = Moments::default().at(&log, 400, async || None).await.unwrap();
        // So that it can be told from one that is computed.
        known.missed = 7;
        for (seq, missed) in [(1000, 7), (400, 7), (399, 0)] {
            let state = Moments::default().at(&log, seq, async || Some(known.clone())).await.unwrap();
            assert_eq!((state.seq, state.missed), (seq, missed));
        }
        let moments = Moments::default();
        moments.at(&log, 500, async || None).await;
        let again = moments.at(&log, 500 + FEW, async || panic!("few events are missing")).await.unwrap();
        assert_eq!((again.seq, again.missed), (500 + FEW, 0));
        // An earlier one, which is not a reason to forget the others.
        moments.at(&log, 1, async || None).await;
        moments.at(&log, 500 + FEW, async || panic!("it is still there")).await.unwrap();
    }

    #[tokio::test]
    async fn a_call_that_was_dropped_leaves_the_states_that_it_has_passed() {
        let log = log_of(1000);
        let moments =
            Moments(Mutex::new(States { every: 100, all: Vec::new(), latest: FleetState::default() }));
        moments.at(&log, 10, async || None).await;
        // It is dropped at an event that is not there yet.
        let mut states = moments.0.lock().await;
        let (mut fleet, mut events) = (states.before(10), log.committed_from(11));
        while fleet.seq < 950 {
            fleet.apply(&events.next().await.unwrap());
            states.pass(&fleet);
        }
        assert_eq!(states.before(1000).seq, 900);
        assert_eq!((states.before(450).seq, states.before(99).seq, states.before(9).seq), (400, 10, 0));
    }
}
