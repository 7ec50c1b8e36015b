//! Keys by which a request that is sent twice begins one run.

use std::time::Duration;

use mainstem_event::Timestamp;
use mainstem_message::{RunId, SessionId};

/// How long a key is remembered.
pub const CLAIM_LASTS: Duration = Duration::from_secs(24 * 3600);

/// That a run is to begin, once, however often it is asked for: an idempotency key, and what was
/// asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a caller knows each field of its claim")]
pub struct Claim {
    /// What the caller calls it.
    pub key: String,
    /// A digest of what was asked.
    pub digest: String,
    /// Where it is to begin.
    pub session: SessionId,
    /// What it would be called.
    pub run: RunId,
    /// When.
    pub at: Timestamp,
}

/// What became of a [`Claim`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there is no fourth case")]
pub enum Claimed {
    /// The key is new: the run is to begin.
    New,
    /// The same was asked before. If there is no such [run](crate::Journal::run), its process has
    /// ended before it could begin it.
    Same {
        /// Where.
        session: SessionId,
        /// What that run is called.
        run: RunId,
    },
    /// Something else was asked with this key.
    Other,
}

impl Claim {
    /// When a key that was claimed then is forgotten.
    pub(crate) fn oldest(&self) -> Timestamp {
        let lasts = u64::try_from(CLAIM_LASTS.as_micros()).unwrap_or(u64::MAX);
        Timestamp::from_micros(self.at.as_micros().saturating_sub(lasts))
    }

    /// What an earlier claim of the same key means for this one.
    pub(crate) fn meets(&self, earlier: &Self) -> Claimed {
        if earlier.digest != self.digest {
            return Claimed::Other;
        }
        Claimed::Same { session: earlier.session.clone(), run: earlier.run.clone() }
    }
}
