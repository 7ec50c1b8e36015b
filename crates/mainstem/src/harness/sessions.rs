//! The sessions that are open in this process, each opened once.

use std::sync::Arc;

use dashmap::DashMap;
use mainstem_journal::JournalError;
use mainstem_message::SessionId;
use mainstem_session::Session;
use tokio::sync::OnceCell;

/// Sessions by id. Opening one does not block another; a failed open is not remembered.
#[derive(Default)]
pub(super) struct Sessions(DashMap<SessionId, Arc<OnceCell<Session>>>);

impl Sessions {
    /// Returns the open session, or loads it; concurrent callers get the same one.
    pub(super) async fn open<F: Future<Output = Result<Session, JournalError>>>(
        &self,
        id: SessionId,
        load: impl FnOnce(SessionId) -> F,
    ) -> Result<Session, JournalError> {
        self.0.remove_if(&id, |_, cell| cell.get().is_some_and(is_lost));
        let cell = self.0.entry(id.clone()).or_default().clone();
        let opened = cell.get_or_try_init(|| load(id.clone())).await.cloned();
        if opened.is_err() {
            self.0.remove_if(&id, |_, known| Arc::ptr_eq(known, &cell) && known.get().is_none());
        }
        opened
    }

    /// Forgets a session; returns whether it was open.
    pub(super) fn close(&self, id: &SessionId) -> bool {
        self.0.remove(id).is_some()
    }
}

/// Returns `true` if the session's record has failed and no run is active that would report the
/// failure.
fn is_lost(session: &Session) -> bool {
    session.log().failure().is_some() && session.active().is_none()
}
