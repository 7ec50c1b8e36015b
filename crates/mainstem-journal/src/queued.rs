//! Runs that wait until their session is free.

use mainstem_message::{RunId, SessionId};

/// A run that waits until its session is free. Stored, it outlives the process that was asked for
/// it: the one that opens the session next begins it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "built by those who queue runs, and by journals")]
pub struct QueuedRun {
    /// Its id.
    pub id: RunId,
    /// Its session.
    pub session: SessionId,
    /// What was asked, in a form that the processes which share the journal know.
    pub request: String,
}
