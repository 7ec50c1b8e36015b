//! Claims of idempotency keys: a request that is sent twice begins one run.

use std::time::Duration;

use mainstem_event::Timestamp;
use mainstem_message::{RunId, SessionId};

/// How long a key is remembered.
pub const CLAIM_LASTS: Duration = Duration::from_secs(24 * 3600);

/// A request to begin a run once, however often it is sent: an idempotency key, and a digest of the
/// request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a caller knows each field of its claim")]
pub struct Claim {
    /// The key, as the caller sends it.
    pub key: String,
    /// A digest of the request.
    pub digest: String,
    /// The session of the run.
    pub session: SessionId,
    /// The run's id if it begins.
    pub run: RunId,
    /// When it was claimed.
    pub at: Timestamp,
}

/// The outcome of a [`Claim`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there is no fourth case")]
pub enum Claimed {
    /// The key is new: the run is to begin.
    New,
    /// The same request was claimed before. If its [run](crate::Journal::run) does not exist, the
    /// process has ended before it could begin it.
    Same {
        /// The session of the run.
        session: SessionId,
        /// The run's id.
        run: RunId,
    },
    /// Another request has claimed this key.
    Other,
}

impl Claim {
    /// Returns the time of the oldest claims that are still remembered when this one is made; for
    /// implementations of [`Journal::claim`](crate::Journal::claim).
    pub fn oldest_remembered(&self) -> Timestamp {
        let lasts = u64::try_from(CLAIM_LASTS.as_micros()).unwrap_or(u64::MAX);
        Timestamp::from_micros(self.at.as_micros().saturating_sub(lasts))
    }

    /// Returns the outcome of this claim if an earlier one of the same key is remembered.
    pub fn outcome_after(&self, earlier: &Self) -> Claimed {
        if earlier.digest != self.digest {
            return Claimed::Other;
        }
        Claimed::Same { session: earlier.session.clone(), run: earlier.run.clone() }
    }
}
