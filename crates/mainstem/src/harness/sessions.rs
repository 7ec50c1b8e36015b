//! The sessions that are open in this process, each opened once.

use std::sync::Arc;

use dashmap::DashMap;
use mainstem_journal::JournalError;
use mainstem_message::SessionId;
use mainstem_session::Session;
use tokio::sync::OnceCell;

/// By id. Opening one session holds no other up, and an opening that fails leaves nothing behind.
#[derive(Default)]
pub(super) struct Sessions(DashMap<SessionId, Arc<OnceCell<Session>>>);

impl Sessions {
    /// The session if it is open, else what `load` returns. Whoever asks for the same session at the same time gets the same one.
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

/// Its record has failed, and no run is left that could tell of it.
fn is_lost(session: &Session) -> bool {
    session.log().failure().is_some() && session.active().is_none()
}
