//! One call of a tool: its progress, its answer, and its cancellation.

use std::{
    collections::{HashMap, VecDeque},
    fmt::Write as _,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use futures_util::{FutureExt, future::BoxFuture};
use mainstem_outbound::Secrets;
use rmcp::{
    RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam,
        ClientRequest, ProgressNotificationParam, ProgressToken, RequestId, ServerResult,
    },
    service::{Peer, PeerRequestOptions, ServiceError},
};
use tokio::{
    sync::{mpsc, watch},
    task::unconstrained,
};

use crate::Error;

/// The number of progress messages that wait for a caller that is behind; later ones are discarded.
const WAITING: usize = 64;

/// The number of progress messages that are stored before their call is registered, and of ended
/// calls that are remembered.
const REMEMBERED: usize = 256;

/// The calls of a connection. Each connection has its own: rmcp counts tokens and ids from 0 for
/// each.
pub(crate) struct Calls {
    board: Mutex<Board>,
    /// The values of variables, which messages must not show.
    pub(crate) secrets: OnceLock<Secrets>,
    /// How the connection ended; `None` while it is open.
    pub(crate) end_reason: watch::Sender<Option<Arc<Error>>>,
}

#[derive(Default)]
struct Board {
    waiting: HashMap<ProgressToken, mpsc::Sender<String>>,
    /// Progress that arrived before the sender of its request learned the token.
    early: VecDeque<(ProgressToken, String)>,
    /// Calls that have ended, whose progress is ignored.
    over: VecDeque<ProgressToken>,
}

impl Default for Calls {
    fn default() -> Self {
        Self { board: Mutex::default(), secrets: OnceLock::new(), end_reason: watch::Sender::new(None) }
    }
}

impl Calls {
    /// Delivers a progress message. Never waits.
    pub(crate) fn progress(&self, said: &ProgressNotificationParam) {
        let (token, line) = (said.progress_token.clone(), line(said));
        let mut board = self.board();
        if let Some(caller) = board.waiting.get(&token) {
            // Progress is news: a caller that is behind misses some.
            let _ = caller.try_send(line);
        } else if !board.over.contains(&token) {
            push(&mut board.early, (token, line));
        }
    }

    fn wait(&self, token: &ProgressToken) -> mpsc::Receiver<String> {
        let (sender, receiver) = mpsc::channel(WAITING);
        let mut board = self.board();
        board.early.retain(|(of, line)| of != token || sender.try_send(line.clone()).is_err());
        board.waiting.insert(token.clone(), sender);
        receiver
    }

    fn end(&self, token: &ProgressToken) {
        let mut board = self.board();
        board.waiting.remove(token);
        board.early.retain(|(of, _)| of != token);
        push(&mut board.over, token.clone());
    }

    /// Returns a text that the server has contributed to, without secrets.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.secrets.get().map_or_else(|| text.to_owned(), |secrets| secrets.redact(text))
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn push<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.len() == REMEMBERED {
        queue.pop_front();
    }
    queue.push_back(item);
}

/// Formats progress as `2/5: unpacking`, as far as it is given.
fn line(said: &ProgressNotificationParam) -> String {
    let mut line = said.progress.to_string();
    if let Some(total) = said.total {
        let _ = write!(line, "/{total}");
    }
    if let Some(message) = &said.message {
        let _ = write!(line, ": {message}");
    }
    line.push('\n');
    line
}

/// The next item of a call.
pub(crate) enum Next {
    Progress(String),
    Answer(Box<Result<ServerResult, ServiceError>>),
}

/// A call that was sent. Dropping it before its answer cancels it.
pub(crate) struct Call {
    peer: Peer<RoleClient>,
    pub(crate) calls: Arc<Calls>,
    /// `None` after the answer.
    id: Option<RequestId>,
    token: ProgressToken,
    progress: mpsc::Receiver<String>,
    answer: BoxFuture<'static, Result<ServerResult, ServiceError>>,
}

impl Call {
    pub(crate) async fn send(
        peer: Peer<RoleClient>,
        calls: Arc<Calls>,
        params: CallToolRequestParams,
    ) -> Result<Self, ServiceError> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
        let (id, token) = (Some(sent.id.clone()), sent.progress_token.clone());
        let progress = calls.wait(&token);
        Ok(Self { peer, calls, id, token, progress, answer: sent.await_response().boxed() })
    }

    /// Returns a progress message, or the answer after all progress.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing. It must not be called after the answer.
    pub(crate) async fn next(&mut self) -> Next {
        tokio::select! {
            biased;
            Some(line) = self.progress.recv() => Next::Progress(line),
            answer = &mut self.answer => {
                // Progress may have arrived since the first branch was polled.
                if let Ok(line) = self.progress.try_recv() {
                    self.answer = std::future::ready(answer).boxed();
                    return Next::Progress(line);
                }
                self.id = None;
                Next::Answer(Box::new(answer))
            }
        }
    }

    /// Tells the server that the call is cancelled; does nothing a second time, or after the
    /// answer.
    pub(crate) fn cancel(&mut self, reason: &str) {
        let Some(id) = self.id.take() else { return };
        let said = CancelledNotificationParam::new(Some(id), Some(reason.to_owned()));
        let said = CancelledNotification::new(said);
        // The first poll puts it into the connection's queue, so the future need not be awaited; it
        // is unconstrained because the caller may have spent its budget. If the queue is full, the
        // server does not read anyway.
        let _ = unconstrained(self.peer.send_notification(said.into())).now_or_never();
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.cancel("the caller was dropped");
        self.calls.end(&self.token);
    }
}
