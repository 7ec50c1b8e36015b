//! The fleet after an earlier event, from the states that were passed on the way to later ones.

pub(crate) mod stored;

use std::sync::Arc;

use futures_util::StreamExt;
use mainstem_event::{EventKind, FleetState, SessionLog};
use mainstem_journal::Journal;
use tokio::sync::Mutex;

use self::stored::Passing;
use crate::past::Past;

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
    /// there are many of them, it begins at a state of the
    /// journal, and stores those that it passes.
    ///
    /// Dropping the future stops reading; the states that were passed stay.
    pub(crate) async fn at(
        &self,
        log: &Arc<SessionLog>,
        seq: u64,
        journal: Option<&dyn Journal>,
    ) -> Option<FleetState> {
        if seq == 0 {
            return Some(FleetState::default());
        }
        if seq > log.last_seq() || !log.until_committed(seq).await {
            return None;
        }
        let mut states = self.0.lock().await;
        let mut fleet = states.before(seq);
        let journal = journal.filter(|_| seq - fleet.seq > FEW);
        if let Some(journal) = journal {
            let known = recorded(journal, log, seq).await.filter(|known| known.seq >= fleet.seq);
            fleet = known.unwrap_or(fleet);
        }
        let mut passing = None;
        if let Some(journal) = journal {
            passing = Some(Passing::after(fleet.seq, journal, log.session_id()).await);
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
            if matches!(event.kind, EventKind::Gap { .. }) {
                // Perhaps the journal could not be read for a moment.
                passing = None;
            }
            if let Some(passing) = &mut passing {
                passing.pass(&fleet);
            }
        }
        if states.latest.seq <= fleet.seq {
            states.latest.clone_from(&fleet);
        }
        drop(states);
        if let Some(mut passing) = passing {
            passing.store().await;
        }
        Some(fleet)
    }
}

/// Returns the latest state of the journal that is not after an event.
async fn recorded(journal: &dyn Journal, log: &SessionLog, seq: u64) -> Option<FleetState> {
    let moment = stored::before(journal, log.session_id(), seq).await;
    if moment.as_ref().is_some_and(|moment| seq - moment.seq <= stored::EVERY) {
        return moment;
    }
    // What the session's last checkpoint has is later, if it is not too late.
    let checkpoint = Past::checkpointed_fleet(journal, log.session_id()).await;
    checkpoint
        .filter(|checkpoint| checkpoint.seq <= seq)
        .into_iter()
        .chain(moment)
        .max_by_key(|state| state.seq)
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
    use mainstem_event::{LogOptions, SystemClock};
    use mainstem_journal::{Checkpoint, MemoryJournal};
    use mainstem_message::SessionId;

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
            let state = moments.at(&log, seq, None).await.unwrap();
            assert_eq!(state, expected[usize::try_from(seq).unwrap()], "{seq}");
        }
        let states = moments.0.lock().await;
        assert!(states.all.len() < MAX, "{}", states.all.len());
        assert!(states.every > 3 && states.all.windows(2).all(|two| two[0].seq < two[1].seq));
        drop(states);
        assert_eq!(moments.at(&log, LAST + 1, None).now_or_never().unwrap(), None);
    }

    /// The events are in a journal, so that the log has all of them.
    async fn recorded_log_of(count: u64, journal: &MemoryJournal) -> Arc<SessionLog> {
        let id: SessionId = "s".parse().unwrap();
        let record = journal.open(&id).await.unwrap();
        let log = SessionLog::with_record(id, Arc::new(SystemClock), LogOptions::default(), record);
        for number in 0..count {
            log.emit(EventKind::Custom { name: "step".into(), value: number.into() });
        }
        log
    }

    #[tokio::test]
    async fn a_stored_state_is_used_for_later_events_and_no_earlier_ones() {
        let journal = MemoryJournal::new();
        let log = recorded_log_of(1000, &journal).await;
        let mut known = Moments::default().at(&log, 400, None).await.unwrap();
        // So that it can be told from one that is computed.
        known.missed = 7;
        known.seq += stored::EVERY;
        let mut passing = Passing::after(0, &journal, log.session_id()).await;
        passing.pass(&known);
        passing.store().await;
        let moment = journal.moment(log.session_id(), u64::MAX).await.unwrap().unwrap();
        let state = moment.state.replace(&known.seq.to_string(), "400");
        journal.store_moment(log.session_id(), Checkpoint { seq: 400, state }).await.unwrap();
        for (seq, missed) in [(1000, 7), (400, 7), (399, 0)] {
            let state = Moments::default().at(&log, seq, Some(&journal)).await.unwrap();
            assert_eq!((state.seq, state.missed), (seq, missed));
        }
        let moments = Moments::default();
        moments.at(&log, 399, None).await;
        let again = moments.at(&log, 399 + FEW, Some(&journal)).await.unwrap();
        assert_eq!((again.seq, again.missed), (399 + FEW, 0), "few events are missing");
        // An earlier one, which is not a reason to forget the others.
        moments.at(&log, 1, None).await;
        assert_eq!(moments.at(&log, 399 + FEW, Some(&journal)).await.unwrap().missed, 0);
    }

    #[tokio::test]
    async fn states_that_are_passed_are_stored() {
        let journal = MemoryJournal::new();
        let last = 2 * stored::EVERY + 10;
        let log = recorded_log_of(last, &journal).await;
        let fleet = Moments::default().at(&log, last, Some(&journal)).await.unwrap();
        assert_eq!(fleet.missed, 0);
        let of = async |seq| stored::before(&journal, log.session_id(), seq).await.map(|state| state.seq);
        assert_eq!(of(last).await, Some(2 * stored::EVERY));
        assert_eq!((of(stored::EVERY).await, of(stored::EVERY - 1).await), (Some(stored::EVERY), None));
        // Another process begins there.
        assert_eq!(Moments::default().at(&log, last, Some(&journal)).await.unwrap(), fleet);
    }

    /// Events that are missing at one moment may be there later, or may have been dropped.
    #[tokio::test]
    async fn no_state_is_stored_that_lacks_events_or_has_dropped_ones() {
        let journal = MemoryJournal::new();
        drop(recorded_log_of(10, &journal).await);
        // Only its ring has events, which are fewer.
        let last = 2 * stored::EVERY + 10;
        let log = log_of(last);
        assert!(Moments::default().at(&log, last, Some(&journal)).await.unwrap().missed > 0);
        assert_eq!(journal.moment(log.session_id(), last).await.unwrap(), None);

        let mut passing = Passing::after(0, &journal, log.session_id()).await;
        let mut fleet = FleetState::default();
        fleet.seq = stored::EVERY;
        passing.pass(&fleet);
        assert!(journal.delete(log.session_id()).await.unwrap());
        drop(recorded_log_of(10, &journal).await);
        passing.store().await;
        assert_eq!(journal.moment(log.session_id(), last).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_call_that_was_dropped_leaves_the_states_that_it_has_passed() {
        let log = log_of(1000);
        let moments =
            Moments(Mutex::new(States { every: 100, all: Vec::new(), latest: FleetState::default() }));
        moments.at(&log, 10, None).await;
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
