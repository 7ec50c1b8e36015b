//! Links: with the secret of one, a session is read, and nothing else.

use mainstem_event::Timestamp;
use mainstem_message::{LinkId, SessionId};

/// A link of a session. Its secret is stored nowhere: the id is made of a digest of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "built by those who create links, and by journals")]
pub struct Link {
    /// Its id.
    pub id: LinkId,
    /// The session that is read with it.
    pub session: SessionId,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
    /// The last event that is read with it; `None` for all, later ones included.
    pub through: Option<u64>,
}

impl Link {
    /// Returns `true` if it has ended.
    pub fn is_over(&self, now: Timestamp) -> bool {
        now >= self.expires_at
    }
}
