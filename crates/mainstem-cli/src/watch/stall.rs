//! Why no event of a session arrives.

use std::{sync::Arc, time::Duration};

use mainstem::api::{AnySession, SessionState};
use tokio::time::timeout;

use crate::{attach::cut, host};

/// How long a server may take to describe a session.
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns why no event arrives, if the session's process has ended before its run, or its server
/// does not respond. `seen` is the number of the last event that was read.
pub(super) async fn stall(session: Arc<dyn AnySession>, seen: u64) -> Option<String> {
    match timeout(PATIENCE, session.view()).await {
        Ok(Ok(view)) => {
            let is_cut = view.state == SessionState::Unfinished && view.last_seq <= seen;
            is_cut.then(|| cut(session.id()).to_string())
        }
        Ok(Err(error)) => Some(format!("{:#}; trying again, q leaves", host::advised(error))),
        Err(_) => Some(format!("no response in {} s; trying again, q leaves", PATIENCE.as_secs())),
    }
}
