//! States of a fleet in the journal, so that an earlier moment is shown without the events before
//! it.

use std::borrow::Cow;

use mainstem_event::{FleetState, Timestamp};
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

/// The states of one session that are passed, to be stored.
pub(crate) struct Passing<'a> {
    journal: &'a dyn Journal,
    id: &'a SessionId,
    /// The last event with a state.
    last: u64,
    /// The session as it was before the first of its events was read.
    session: Option<Begun>,
    passed: Vec<Checkpoint>,
}

/// Which session it is, and what retention has dropped of it.
#[derive(PartialEq)]
struct Begun {
    created_at: Timestamp,
    first: u64,
}

impl<'a> Passing<'a> {
    /// Takes states from [`EVERY`] events after this one on.
    pub(crate) async fn after(seq: u64, journal: &'a dyn Journal, id: &'a SessionId) -> Self {
        let session = begun(journal, id).await;
        Self { journal, id, last: seq, session, passed: Vec::new() }
    }

    /// Takes states behind the last one that is stored up to an event.
    pub(crate) async fn going_on(seq: u64, journal: &'a dyn Journal, id: &'a SessionId) -> Self {
        let last = journal.moment(id, seq).await.ok().flatten();
        Self::after(last.map_or(0, |last| last.seq), journal, id).await
    }

    /// Takes a state if it is far enough from the last one.
    pub(crate) fn pass(&mut self, fleet: &FleetState) {
        if fleet.seq < self.last.saturating_add(EVERY) {
            return;
        }
        self.last = fleet.seq;
        let stored = Stored { form: FORM, fleet: Cow::Borrowed(fleet) };
        let state = serde_json::to_string(&stored).ok();
        self.passed.extend(state.map(|state| Checkpoint { seq: fleet.seq, state }));
    }

    /// Stores what was taken, unless events of the session were dropped meanwhile: the states have
    /// them. A process that only reads stores nothing.
    pub(crate) async fn store(&mut self) {
        if self.passed.is_empty()
            || self.session.is_none()
            || begun(self.journal, self.id).await != self.session
        {
            return;
        }
        for moment in self.passed.drain(..) {
            if let Err(error) = self.journal.store_moment(self.id, moment).await {
                return tracing::debug!(session = %self.id, %error, "a state was not stored");
            }
        }
    }
}

async fn begun(journal: &dyn Journal, id: &SessionId) -> Option<Begun> {
    let session = journal.session(id).await.ok()??;
    Some(Begun { created_at: session.created_at, first: session.first })
}
