//! Which sessions are deleted because they are old, or because all are too large. Pure.

use std::time::Duration;

use mainstem_event::Timestamp;
use mainstem_journal::SessionSummary;
use mainstem_message::SessionId;

/// Which sessions are kept. By default all are.
///
/// ```
/// use std::time::Duration;
/// use mainstem_session::Keep;
///
/// let month = Duration::from_secs(30 * 24 * 3600);
/// let keep = Keep::all().with_max_idle(month).with_max_bytes(10 << 30);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Keep {
    /// Sessions without an event for longer are deleted.
    pub max_idle: Option<Duration>,
    /// Sessions are deleted, the one whose last event is the oldest first, until the events of the
    /// others have at most so many bytes.
    pub max_bytes: Option<u64>,
}

impl Keep {
    /// Keeps all sessions.
    pub const fn all() -> Self {
        Self { max_idle: None, max_bytes: None }
    }

    /// Deletes sessions without an event for longer than this.
    #[must_use]
    pub fn with_max_idle(mut self, idle: Duration) -> Self {
        self.max_idle = Some(idle);
        self
    }

    /// Deletes sessions until the events of the others have at most so many bytes.
    #[must_use]
    pub fn with_max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Returns `true` if no session is ever deleted.
    pub fn is_all(&self) -> bool {
        *self == Self::all()
    }

    /// Returns the sessions that are not kept, the oldest first. `bytes` are those of a session's
    /// events. What is damaged stays: its time is not known.
    pub(super) fn surplus(
        &self,
        sessions: &[SessionSummary],
        bytes: impl Fn(&SessionId) -> u64,
        now: Timestamp,
    ) -> Vec<SessionId> {
        let mut intact: Vec<_> = sessions.iter().filter(|session| session.damage.is_none()).collect();
        intact.sort_by_key(|session| session.updated_at);
        let mut left: u64 = intact.iter().map(|session| bytes(&session.id)).sum();
        let is_old =
            |session: &SessionSummary| self.max_idle.is_some_and(|idle| session.updated_at.after(idle) < now);
        let mut surplus = Vec::new();
        for session in intact {
            if !is_old(session) && self.max_bytes.is_none_or(|most| left <= most) {
                break;
            }
            left -= bytes(&session.id);
            surplus.push(session.id.clone());
        }
        surplus
    }
}

#[cfg(test)]
mod tests {
    //! What is kept.

    use super::*;

    #[test]
    fn the_oldest_go_first_and_what_is_damaged_stays() {
        #[track_caller]
        fn check(keep: Keep, expected: &[&str]) {
            let session = |(name, at): (&str, u64)| {
                let mut session = SessionSummary::new(name.parse().unwrap());
                session.updated_at = Timestamp::from_micros(at * 1_000_000);
                session.damage = (name == "damaged").then(|| "it is".to_owned());
                session
            };
            let sessions = [("new", 90), ("damaged", 0), ("old", 10), ("middle", 50)].map(session);
            // Each has ten bytes, and the new one a hundred.
            let bytes = |id: &SessionId| if id.as_str() == "new" { 100 } else { 10 };
            let surplus = keep.surplus(&sessions, bytes, Timestamp::from_micros(100_000_000));
            assert_eq!(surplus.iter().map(SessionId::as_str).collect::<Vec<_>>(), expected);
        }
        let idle = |seconds| Keep::all().with_max_idle(Duration::from_secs(seconds));
        check(Keep::all(), &[]);
        check(idle(90), &[]);
        check(idle(89), &["old"]);
        check(idle(20), &["old", "middle"]);
        check(Keep::all().with_max_bytes(120), &[]);
        check(Keep::all().with_max_bytes(119), &["old"]);
        check(Keep::all().with_max_bytes(100), &["old", "middle"]);
        check(Keep::all().with_max_bytes(0), &["old", "middle", "new"]);
        check(idle(20).with_max_bytes(119), &["old", "middle"]);
    }
}
