//! A response that its server goes on with although the connection is cut: requests for its rest.

use std::{
    mem,
    pin::Pin,
    sync::{Arc, LazyLock},
    task::{Context, Poll},
    time::Duration,
};

use mainstem_model::{ErrorKind, ModelError};
use reqwest::{StatusCode, Url};
use tokio::{
    sync::watch,
    time::{Instant, Sleep, sleep, timeout},
};

use crate::{
    HttpClient, Server,
    response::{Payloads, get, stream, whole},
};

/// How many requests in a row may bring nothing: for the stream, then for the state.
const ATTEMPTS: u32 = 5;

/// The wait before the second request in a row; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// The wait between two requests for the state of a response that is not complete.
const POLL_WAIT: Duration = Duration::from_secs(2);

/// The longest time for the head of a response, for its state, and for the request to cancel it.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// How long a response may be in progress, as its state shows, without anything new of it.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// After a silence of this length, the rest is requested on another connection: this one may be cut
/// without a sign.
const SILENCE: Duration = Duration::from_secs(30);

/// Where a response that outlives its connection is read on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made by decoders")]
pub struct Resumption {
    /// What gives the rest as a stream of payloads (GET).
    pub rest: Url,
    /// What gives the whole response as it is now (GET): the server keeps the stream for less time
    /// than the response.
    pub state: Url,
    /// What ends the response (POST).
    pub cancel: Url,
}

/// What a server has of a response.
pub(crate) enum Found {
    /// The rest, as a stream.
    Rest(Payloads),
    /// The whole, as it is now.
    State(String),
}

/// A request for the rest.
pub(crate) type Resuming = Pin<Box<dyn Future<Output = Result<Found, Failed>> + Send>>;

/// Why a request for the rest has failed.
#[derive(Clone, Copy)]
pub(crate) enum Failed {
    /// For a reason that may pass.
    Passing,
    /// The server does not have what was requested.
    Refused,
}

/// The requests for the rest of one response.
pub(crate) struct Resumer {
    http: HttpClient,
    server: Arc<Server>,
    /// Requests since something of the response came last, or its state showed progress.
    requests: u32,
    /// Since when nothing new has come.
    since: Instant,
    /// Whether its state is requested, because its stream brought nothing.
    is_polled: bool,
    /// Whether the server has refused to stream the rest.
    has_no_stream: bool,
    /// Fires after a silence; `None` for a response that ends with its connection.
    alarm: Option<Pin<Box<Sleep>>>,
    /// Why the connection ended; the error of the call if the rest can't be read.
    cut: Option<ModelError>,
    is_cancelled: bool,
}

impl Resumer {
    pub(crate) fn new(http: HttpClient, server: Arc<Server>) -> Self {
        Self {
            http,
            server,
            requests: 0,
            since: Instant::now(),
            is_polled: false,
            has_no_stream: false,
            alarm: None,
            cut: None,
            is_cancelled: false,
        }
    }

    /// Resets the counts: the response has come further.
    pub(crate) fn came(&mut self) {
        self.requests = 0;
        self.since = Instant::now();
        self.watch();
    }

    /// Restarts the alarm of a silent connection.
    pub(crate) fn watch(&mut self) {
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep(SILENCE)));
        alarm.as_mut().reset(Instant::now() + SILENCE);
    }

    /// Ready when the connection has been silent for long.
    pub(crate) fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.alarm.as_mut().map_or(Poll::Pending, |alarm| alarm.as_mut().poll(cx))
    }

    /// Begins to request the rest after a cut.
    ///
    /// # Errors
    /// The cut, if too many requests brought nothing.
    pub(crate) fn resume(&mut self, from: Resumption, cut: ModelError) -> Result<Resuming, ModelError> {
        self.cut = Some(cut);
        self.next(from)
    }

    /// Begins to request the state after a silence, and the rest if that is in progress.
    ///
    /// # Errors
    /// As for [`resume`](Self::resume).
    pub(crate) fn resume_silent(&mut self, from: Resumption) -> Result<Resuming, ModelError> {
        let what = format!("has sent nothing for {} s", SILENCE.as_secs());
        let cut = self.server.error(ErrorKind::Timeout, &what);
        self.is_polled = true;
        self.resume(from, cut)
    }

    /// Begins to request more of a response that is not complete yet, as its state shows.
    ///
    /// # Errors
    /// The cut, if nothing new has come for long.
    pub(crate) fn go_on(&mut self, from: Resumption) -> Result<Resuming, ModelError> {
        if self.since.elapsed() > PATIENCE {
            return Err(self.cut());
        }
        self.requests = 0;
        self.is_polled = self.has_no_stream;
        Ok(self.request(from, POLL_WAIT))
    }

    /// Begins the next request after a failed one.
    ///
    /// # Errors
    /// The cut, if too many requests brought nothing, or the server does not have the response.
    pub(crate) fn failed(&mut self, from: Resumption, failed: Failed) -> Result<Resuming, ModelError> {
        if let Failed::Refused = failed {
            self.has_no_stream = true;
            self.give_up()?;
        }
        self.next(from)
    }

    fn next(&mut self, from: Resumption) -> Result<Resuming, ModelError> {
        if self.requests == ATTEMPTS {
            self.give_up()?;
        }
        let wait = match self.requests {
            0 => Duration::ZERO,
            requests => FIRST_WAIT * 2_u32.pow(requests - 1),
        };
        Ok(self.request(from, wait))
    }

    /// Gives up the stream for the state; an error if that was requested.
    fn give_up(&mut self) -> Result<(), ModelError> {
        self.requests = 0;
        if mem::replace(&mut self.is_polled, true) {
            return Err(self.cut());
        }
        Ok(())
    }

    fn cut(&mut self) -> ModelError {
        self.cut.take().unwrap_or_else(|| self.server.unfinished())
    }

    fn request(&mut self, from: Resumption, wait: Duration) -> Resuming {
        self.requests += 1;
        let (http, server, is_polled) = (self.http.clone(), self.server.clone(), self.is_polled);
        Box::pin(async move {
            sleep(wait).await;
            if is_polled {
                state(&http, &at(&server, from.state)).await
            } else {
                rest(&http, &at(&server, from.rest)).await
            }
        })
    }

    /// Ends the response at the server, once, in a task of its own: otherwise it is written to its
    /// end, and paid for. Without a runtime nothing is sent.
    pub(crate) fn cancel(&mut self, from: Resumption) {
        if mem::replace(&mut self.is_cancelled, true) {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (http, server, sending) = (self.http.clone(), at(&self.server, from.cancel), Sending::begin());
        runtime.spawn(async move {
            // The call has ended: what the server answers does not matter.
            let _ = timeout(TIME_LIMIT, http.post(&server, Vec::new())).await;
            drop(sending);
        });
    }
}

/// The requests of this process that cancel responses and are not over.
static CANCELS: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::Sender::new(0));

/// One of [`CANCELS`].
struct Sending;

impl Sending {
    fn begin() -> Self {
        CANCELS.send_modify(|count| *count += 1);
        Self
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        CANCELS.send_modify(|count| *count -= 1);
    }
}

/// Waits until no request that cancels a response is being sent in this process, 10 s at most: a
/// program that ends before is charged for what its vendors write on. Its runtime must still run.
pub async fn cancels_sent() {
    let mut cancels = CANCELS.subscribe();
    // A sender that is static stays.
    let _ = cancels.wait_for(|count| *count == 0).await;
}

async fn rest(http: &HttpClient, server: &Server) -> Result<Found, Failed> {
    let sent = timeout(TIME_LIMIT, stream(http, server)).await;
    match sent.ok().and_then(Result::ok).ok_or(Failed::Passing)? {
        Ok(payloads) => Ok(Found::Rest(payloads)),
        Err(status) => Err(refused(status)),
    }
}

async fn state(http: &HttpClient, server: &Server) -> Result<Found, Failed> {
    let passing = |_| Failed::Passing;
    let response = match get(http, server, TIME_LIMIT).await.map_err(passing)? {
        Ok(response) => response,
        Err(refusal) => return Err(refused(refusal.status)),
    };
    whole(server, response).await.map(Found::State).map_err(passing)
}

/// Returns the failure of a request that got this status.
fn refused(status: StatusCode) -> Failed {
    match status {
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Failed::Passing,
        status if status.is_client_error() => Failed::Refused,
        _ => Failed::Passing,
    }
}

/// Returns the server at another of its URLs.
fn at(server: &Server, url: Url) -> Server {
    let mut server = server.clone();
    server.set_url(url);
    server
}
