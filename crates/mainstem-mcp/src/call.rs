//! One call of a tool: its progress, its answer, and what becomes of it if nobody waits any more.

use std::{
    collections::{HashMap, VecDeque},
    fmt::Write as _,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use futures_util::{FutureExt, future::BoxFuture};
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

use crate::{Error, vars::Vars};

/// How many words about its progress wait for a caller that is behind; what comes then is passed
/// over.
const WAITING: usize = 64;

/// How many words are kept of calls that are only just beginning, and how many calls are remembered
/// that have ended.
const KEPT: usize = 256;

/// A connection, as its calls see it. Each has its own: rmcp counts tokens and ids from 0 for each.
pub(crate) struct Calls {
    board: Mutex<Board>,
    /// What is not shown of what the server says about itself.
    pub(crate) vars: OnceLock<Vars>,
    /// How it ended, once it has.
    pub(crate) fate: watch::Sender<Option<Arc<Error>>>,
}

#[derive(Default)]
struct Board {
    waiting: HashMap<ProgressToken, mpsc::Sender<String>>,
    /// A server may be faster than the request's sender is told its token.
    early: VecDeque<(ProgressToken, String)>,
    /// Of these nobody wants to hear any more.
    over: VecDeque<ProgressToken>,
}

impl Default for Calls {
    fn default() -> Self {
        Self { board: Mutex::default(), vars: OnceLock::new(), fate: watch::Sender::new(None) }
    }
}

impl Calls {
    /// A word about a call's progress. Never waits.
    pub(crate) fn progress(&self, said: &ProgressNotificationParam) {
        let (token, line) = (said.progress_token.clone(), line(said));
        let mut board = self.board();
        if let Some(caller) = board.waiting.get(&token) {
            // Progress is news: who is behind misses some.
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

    /// A text that the server has a part in, without secrets.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.vars.get().map_or_else(|| text.to_owned(), |vars| vars.secrets.redact(text))
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn push<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.len() == KEPT {
        queue.pop_front();
    }
    queue.push_back(item);
}

/// `2/5: unpacking`, as far as it is said.
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

/// What happens next.
pub(crate) enum Next {
    Progress(String),
    Answer(Box<Result<ServerResult, ServiceError>>),
}

/// A call that was sent. Dropped before its answer, it is cancelled.
pub(crate) struct Call {
    peer: Peer<RoleClient>,
    pub(crate) calls: Arc<Calls>,
    /// Until it is answered.
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

    /// A word about its progress, or the answer, before which all progress comes.
    ///
    /// # Cancel safety
    /// Nothing is lost. After the answer it is not to be asked again.
    pub(crate) async fn next(&mut self) -> Next {
        tokio::select! {
            biased;
            Some(line) = self.progress.recv() => Next::Progress(line),
            answer = &mut self.answer => {
                // It may have come while the progress was looked at.
                if let Ok(line) = self.progress.try_recv() {
                    self.answer = std::future::ready(answer).boxed();
                    return Next::Progress(line);
                }
                self.id = None;
                Next::Answer(Box::new(answer))
            }
        }
    }

    /// Tells the server that nobody waits any more; says nothing a second time, nor after the
    /// answer.
    pub(crate) fn cancel(&mut self, reason: &str) {
        let Some(id) = self.id.take() else { return };
        let said = CancelledNotificationParam::new(Some(id), Some(reason.to_owned()));
        let said = CancelledNotification::new(said);
        // Its first poll puts it into the connection's queue, and there is nothing to wait for;
        // unless the caller's share of this poll is spent, which a drop must not go by. If the
        // queue is full, the server is not listening either.
        let _ = unconstrained(self.peer.send_notification(said.into())).now_or_never();
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.cancel("the caller is gone");
        self.calls.end(&self.token);
    }
}
