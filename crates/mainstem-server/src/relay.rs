//! Requests about a session that another node has open: they are sent to that node through the
//! journal's database, and its answer is returned. No node connects to another.

use std::{
    convert::Infallible,
    future::pending,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header, request},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::{FutureExt, StreamExt};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use mainstem::{
    journal::{Asked, JournalError, Parts, Relay},
    message::{SessionId, TenantName},
    policy::Tenant,
    session::SessionCopy,
};
use mainstem_api::{Code, NewRun, OnDisconnect, RunView, StreamForm};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    app::App,
    caller::Caller,
    events,
    feed::encoder,
    jobs::OfJob,
    prefix::Prefix,
    problem::Problem,
    readers::{ReaderPermit, Source},
};

/// How many requests of other nodes are answered at once.
const ANSWERED: usize = 256;

/// How many bytes of a body make a part of an answer, if as many are there.
const PART: usize = 64 << 10;

/// The maximum size of a run as another node describes it, with its reply.
const RUN: usize = 64 << 20;

/// How often a request is tried again here if the node that had the session has ended.
const ATTEMPTS: usize = 3;

/// How long a node that drains keeps a request for a run, before another node tries to have the
/// session.
const KEPT: Duration = Duration::from_secs(1);

/// How long a request waits for the session of a node that drains.
const DRAINED: Duration = Duration::from_secs(60);

/// Of the caller's headers, those that say who the caller is: the other node gets the tenant.
const SECRET: [HeaderName; 4] = [
    header::AUTHORIZATION,
    header::COOKIE,
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("x-api-key"),
];

/// In the extensions of a refusal, in whatever form it is: the session that another node has open.
#[derive(Clone, Debug)]
pub(crate) struct Elsewhere(pub(crate) SessionId);

impl Elsewhere {
    /// The member of a problem that names the session.
    pub(crate) const MEMBER: &str = "session";

    pub(crate) fn of(problem: &Problem) -> Option<Self> {
        let problem = problem.body();
        let session = problem.more.get(Self::MEMBER).filter(|_| problem.code == Code::SessionBusy)?;
        Some(Self(session.as_str()?.parse().ok()?))
    }
}

/// In the extensions of a refusal: the server drains, nothing was done, and another node can do it.
#[derive(Clone, Copy)]
struct Drains;

/// Returns `true` if a request is refused because the server drains.
pub(crate) fn drains(response: &Response) -> bool {
    response.extensions().get::<Drains>().is_some()
}

/// Returns what other nodes are told by the extensions of a refusal.
pub(crate) fn marks(problem: &Problem) -> Extensions {
    let mut marks = Extensions::new();
    if let Some(elsewhere) = Elsewhere::of(problem) {
        marks.insert(elsewhere);
    }
    if problem.is_left_to_others() {
        marks.insert(Drains);
    }
    marks
}

/// In the extensions of a request that another node has sent: its caller, who is known there.
#[derive(Clone)]
pub(crate) struct Relayed(pub(crate) Tenant);

/// What a request is sent on with. The extractors of the caller and of the body fill it.
#[derive(Clone, Default)]
pub(crate) struct Known(Arc<Mutex<(Option<Tenant>, Bytes)>>);

impl Known {
    /// Notes the caller of a request.
    pub(crate) fn set_tenant(&self, tenant: &Tenant) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0 = Some(tenant.clone());
    }

    /// Notes the body of a request.
    pub(crate) fn set_body(&self, body: &Bytes) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.clone_from(body);
    }

    fn get(&self) -> (Option<Tenant>, Bytes) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The first line of a relayed request, as JSON; its body follows.
#[derive(Serialize, Deserialize)]
struct RequestHead {
    method: String,
    uri: String,
    headers: Vec<(String, String)>,
    tenant: Option<TenantName>,
    /// Whether a job of the other node asks, and not a caller.
    #[serde(default)]
    is_of_job: bool,
}

/// The first part of an answer, as JSON; the parts of its body follow.
#[derive(Serialize, Deserialize)]
struct ResponseHead {
    /// Whether the session was moved to another node. The request was not handled then.
    #[serde(default)]
    is_elsewhere: bool,
    status: u16,
    headers: Vec<(String, String)>,
}

/// Answers a request; if another node has its session open, lets that node answer it.
pub(crate) async fn relay(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let relay = app.harness.journal().and_then(|journal| journal.relay());
    let Some(relay) = relay.filter(|_| request.extensions().get::<Relayed>().is_none()) else {
        return next.run(request).await;
    };
    let known = Known::default();
    request.extensions_mut().insert(known.clone());
    let (parts, body) = request.into_parts();
    let mut response = next.clone().run(Request::from_parts(parts.clone(), body)).await;
    let (mut attempts, until) = (ATTEMPTS, Instant::now() + DRAINED);
    while attempts > 0 {
        let Some(session) = elsewhere(&response) else { break };
        // A session is refused to a caller who is known.
        let (Some(tenant), body) = known.get() else { break };
        // Before the run begins: it must not be refused when it has begun.
        let reader = match form_of_new_run(&parts, &body) {
            Some(form) => match RunReader::of(&app, tenant.clone(), &session, form).await {
                Ok(reader) => reader,
                Err(problem) => return problem.into_response(),
            },
            None => None,
        };
        let asked = if reader.is_some() { without_form(&parts) } else { parts.clone() };
        let sent = Instant::now();
        match pass_on(&*relay, &session, &asked, tenant, &body).await {
            Ok(Some(answer)) => {
                return match reader {
                    Some(reader) => reader.read(&app, &parts, answer).await,
                    None => answer,
                };
            }
            // No node has it open now, or its node drains: it can be opened here.
            Ok(None) => {
                if sent.elapsed() < KEPT || Instant::now() > until {
                    attempts -= 1;
                }
                response = next.clone().run(Request::from_parts(parts.clone(), Body::from(body))).await;
            }
            Err(error) => return app.unreadable(&error).into_response(),
        }
    }
    response
}

/// Returns the form in which a request reads the run that it begins, if this node can read the run
/// from the journal. A run that waits for its turn, or that ends with its reader, is read at the
/// node of its session.
fn form_of_new_run(parts: &request::Parts, body: &[u8]) -> Option<StreamForm> {
    let path: Vec<_> = parts.uri.path().split('/').skip(1).collect();
    let is_new_run = parts.method == Method::POST && matches!(*path, ["v1", "sessions", _, "runs"]);
    let run: NewRun = is_new_run.then(|| serde_json::from_slice(body).ok()).flatten()?;
    let is_there = run.queue || run.options.on_disconnect == OnDisconnect::Cancel;
    let accept = parts.headers.get(header::ACCEPT)?.to_str().ok()?;
    StreamForm::accepted(accept).filter(|_| !is_there)
}

/// Returns a request whose response is the run, not its events.
fn without_form(parts: &request::Parts) -> request::Parts {
    let mut parts = parts.clone();
    parts.headers.remove(header::ACCEPT);
    parts.headers.remove("prefer");
    parts
}

/// What reads a run here that another node begins.
struct RunReader {
    copy: SessionCopy,
    permit: ReaderPermit,
    form: StreamForm,
}

impl RunReader {
    /// Returns a reader; `None` if nothing of the session is recorded yet.
    ///
    /// # Errors
    /// There are too many readers, or the journal can't be read.
    async fn of(
        app: &Arc<App>,
        tenant: Tenant,
        session: &SessionId,
        form: StreamForm,
    ) -> Result<Option<Self>, Problem> {
        let caller = Caller::of(app, tenant)?;
        let copy = caller.harness.sessions().copy(session).await.map_err(|error| app.unreadable(&error))?;
        let Some(copy) = copy else { return Ok(None) };
        let permit = ReaderPermit::acquire(app, &caller, Source::Elsewhere(copy.clone()))?;
        Ok(Some(Self { copy, permit, form }))
    }

    /// Streams the run that has begun. If it can't be read, the response is the run.
    async fn read(self, app: &Arc<App>, parts: &request::Parts, begun: Response) -> Response {
        if !begun.status().is_success() {
            return begun;
        }
        let Self { copy, permit, form } = self;
        let (head, body) = begun.into_parts();
        let body = match to_bytes(body, RUN).await {
            Ok(body) => body,
            Err(error) => return unanswered(&error.to_string()).into_response(),
        };
        let encoder = encoder(form, Prefix::of(parts));
        let read = match serde_json::from_slice::<RunView>(&body) {
            Ok(run) => events::of_run_elsewhere(app, &copy, &run, encoder, permit).await,
            Err(_) => None,
        };
        let Some(mut response) = read else { return Response::from_parts(head, Body::from(body)) };
        for name in [header::LOCATION, HeaderName::from_static("idempotent-replayed")] {
            if let Some(value) = head.headers.get(&name) {
                response.headers_mut().insert(name, value.clone());
            }
        }
        response
    }
}

/// Returns the session that another node has open, if that is why a request is refused.
fn elsewhere(response: &Response) -> Option<SessionId> {
    response.extensions().get::<Elsewhere>().map(|elsewhere| elsewhere.0.clone())
}

async fn pass_on(
    relay: &dyn Relay,
    session: &SessionId,
    parts: &request::Parts,
    tenant: Tenant,
    body: &Bytes,
) -> Result<Option<Response>, JournalError> {
    let session = tenant.as_ref().map_or_else(|| session.clone(), |tenant| session.scoped(tenant));
    let head = RequestHead {
        method: parts.method.to_string(),
        uri: parts.uri.to_string(),
        headers: texts(&parts.headers, &SECRET),
        tenant,
        is_of_job: parts.extensions.get::<OfJob>().is_some(),
    };
    let mut message = serde_json::to_vec(&head).unwrap_or_default();
    message.push(b'\n');
    message.extend_from_slice(body);
    let Some(mut answer) = relay.ask(&session, message).await? else { return Ok(None) };
    let first = answer.next().await.transpose()?.unwrap_or_default();
    Ok(match parsed::<ResponseHead>(&first) {
        Ok(head) if head.is_elsewhere => None,
        Ok(head) => Some(response(&head, answer)),
        Err(why) => Some(unanswered(&why).into_response()),
    })
}

fn response(head: &ResponseHead, parts: Parts) -> Response {
    let mut response = Response::new(Body::from_stream(parts));
    *response.status_mut() = StatusCode::from_u16(head.status).unwrap_or(StatusCode::BAD_GATEWAY);
    *response.headers_mut() = headers(&head.headers);
    response
}

fn unanswered(why: &str) -> Problem {
    tracing::error!(why, "a node of another version has sent what can't be read");
    Problem::new(Code::JournalUnavailable, "the node that has the session open can't be understood")
}

/// Answers the requests of other nodes about sessions that are open here; never returns.
pub(crate) async fn answer_others(app: &App, router: Router) -> Infallible {
    let Some(relay) = app.harness.journal().and_then(|journal| journal.relay()) else {
        return pending().await;
    };
    // Each has a task, as a connection has: a panic ends one request.
    let (tasks, places) = (TaskTracker::new(), Arc::new(Semaphore::new(ANSWERED)));
    let mut asked = relay.asked();
    loop {
        // Before a request is taken: others may have room for it.
        let Ok(place) = places.clone().acquire_owned().await else { return pending().await };
        let Some(asked) = asked.next().await else { return pending().await };
        tasks.spawn(answer(router.clone(), app.stop.clone(), asked, place));
    }
}

async fn answer(router: Router, stop: CancellationToken, asked: Asked, place: OwnedSemaphorePermit) {
    let answering = async {
        let response = match relayed_request(&asked.request) {
            Ok(request) => {
                let service = TowerToHyperService::new(router);
                service.call(request).await.unwrap_or_else(|never: Infallible| match never {})
            }
            Err(why) => unanswered(&why).into_response(),
        };
        let mut place = Some(place);
        if drains(&response) {
            place = None;
            let _ = timeout(KEPT, stop.cancelled()).await;
        }
        send(&asked, response, place).await
    };
    tokio::select! {
        biased;
        // The response is dropped, as if its reader had disconnected.
        () = asked.answer.withdrawn() => {}
        sent = answering => {
            if let Err(error) = sent {
                tracing::debug!(%error, "another node does not read its answer");
            }
        }
    }
}

/// Sends a response. Its body may be a stream without an end, so it holds no place.
async fn send(
    asked: &Asked,
    response: Response,
    place: Option<OwnedSemaphorePermit>,
) -> Result<(), JournalError> {
    let head = ResponseHead {
        is_elsewhere: elsewhere(&response).is_some() || drains(&response),
        status: response.status().as_u16(),
        headers: texts(response.headers(), &[]),
    };
    asked.answer.send(serde_json::to_vec(&head).unwrap_or_default()).await?;
    drop(place);
    let mut body = response.into_body().into_data_stream().fuse();
    while let Some(bytes) = body.next().await {
        let Ok(bytes) = bytes else { return Ok(()) };
        let mut part = bytes.to_vec();
        // What is there already goes with it.
        while part.len() < PART
            && let Some(Some(Ok(more))) = body.next().now_or_never()
        {
            part.extend_from_slice(&more);
        }
        asked.answer.send(part).await?;
    }
    asked.answer.end().await
}

fn relayed_request(message: &[u8]) -> Result<Request, String> {
    let end = message.iter().position(|byte| *byte == b'\n').unwrap_or(message.len());
    let (head, body) = message.split_at(end);
    let head = parsed::<RequestHead>(head)?;
    let mut request = Request::new(Body::from(body.get(1..).unwrap_or_default().to_vec()));
    *request.method_mut() = head.method.parse::<Method>().map_err(|error| error.to_string())?;
    *request.uri_mut() = head.uri.parse::<Uri>().map_err(|error| error.to_string())?;
    *request.headers_mut() = headers(&head.headers);
    if head.is_of_job {
        request.extensions_mut().insert(OfJob(head.tenant.clone()));
    }
    request.extensions_mut().insert(Relayed(head.tenant));
    Ok(request)
}

fn parsed<T: DeserializeOwned>(json: &[u8]) -> Result<T, String> {
    serde_json::from_slice(json).map_err(|error| error.to_string())
}

/// Returns the headers that are text, without those that are to be left out.
fn texts(headers: &HeaderMap, without: &[HeaderName]) -> Vec<(String, String)> {
    let headers = headers.iter().filter(|(name, _)| !without.contains(name));
    headers.filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned()))).collect()
}

fn headers(texts: &[(String, String)]) -> HeaderMap {
    let header = |(name, value): &(String, String)| {
        Some((name.parse::<HeaderName>().ok()?, HeaderValue::from_str(value).ok()?))
    };
    texts.iter().filter_map(header).collect()
}
