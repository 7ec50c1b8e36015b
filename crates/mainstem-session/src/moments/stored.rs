//! States of a fleet in the journal, so that an earlier moment is shown without the events before
//! it.

use std::borrow::Cow;

use mainstem_event::FleetState;
use mainstem_journal::{Checkpoint, Journal};
use mainstem_message::SessionId;
use serde::{Deserialize, Serialize};

/// The distance between two stored states, in events: as many are folded in some tens of
/// milliseconds.
pub(super) const EVERY: u64 = 16_384;

/// The form of stored states; one of another form is not read.
const FORM: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    form: u32,
    fleet: Cow<'a, FleetState>,
}

/// Returns the latest stored state that is not after an event.
pub(crate) async fn before(journal: &dyn Journal, id: &SessionId, seq: u64) -> Option<FleetState> {
    let found = journal.moment(id, seq).await;
    let found = found.inspect_err(|error| tracing::warn!(session = %id, %error, "a state can't be read"));
    let stored: Stored<'_> = serde_json::from_str(&found.ok()??.state).ok()?;
    (stored.form == FORM).then(|| stored.fleet.into_owned())
}

/// Stores the states of one session that are passed.
pub(crate) struct Passing<'a> {
    journal: &'a dyn Journal,
    id: &'a SessionId,
    /// The last event with a state.
    last: u64,
}

impl<'a> Passing<'a> {
    /// Stores states from [`EVERY`] events after this one on.
    pub(crate) fn after(seq: u64, journal: &'a dyn Journal, id: &'a SessionId) -> Self {
        Self { journal, id, last: seq }
    }

    /// Stores states behind the last one that is stored up to an event.
    pub(crate) async fn going_on(seq: u64, journal: &'a dyn Journal, id: &'a SessionId) -> Self {
        let last = journal.moment(id, seq).await.ok().flatten();
        Self::after(last.map_or(0, |last| last.seq), journal, id)
    }

    /// Stores a state if it is far enough from the last one. A process that only reads stores none.
    pub(crate) async fn pass(&mut self, fleet: &FleetState) {
        if fleet.seq < self.last.saturating_add(EVERY) {
            return;
        }
        self.last = fleet.seq;
        let stored = Stored { form: FORM, fleet: Cow::Borrowed(fleet) };
        let Ok(state) = serde_json::to_string(&stored) else { return };
        let moment = Checkpoint { seq: fleet.seq, state };
        if let Err(error) = self.journal.store_moment(self.id, moment).await {
            tracing::debug!(session = %self.id, %error, "a state was not stored");
        }
    }
}
