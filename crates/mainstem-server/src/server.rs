//! The server: its builder, its router, and serving.

use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::{
    Router,
    extract::{DefaultBodyLimit, Request, State},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
};
use mainstem::{BuildError, Harness, event::OnLost, message::Role, session::Keep};
use mainstem_api::Code;
use mainstem_outbound::{Host, Reach};
use tokio::{
    net::TcpListener,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::Span;

use crate::{
    app::{App, Limits, Served, shutting_down},
    body,
    hosts::Hosts,
    jobs::work,
    listen,
    observe::{RequestSpans, observe},
    problem::Problem,
    protocols::Protocol,
    prune::prune,
    relay::{answer_others, relay},
    routes::routes,
    take_over::{continue_tasks, take_over},
    tokens::Tokens,
};

/// The default limits of concurrent work.
pub(crate) const DEFAULTS: Limits = Limits {
    runs: 64,
    sessions: None,
    readers_per_session: 32,
    idle: None,
    jobs: 16,
    jobs_per_tenant: None,
    keep: Keep::all(),
};

/// How long a server that drains waits until the ends of its jobs are recorded.
const JOBS_RECORDED: Duration = Duration::from_secs(1);

/// How often a server that drains looks for active runs.
const DRAIN_POLL: Duration = Duration::from_millis(20);

/// A harness that is served. Cheap to clone; clones are the same server.
///
/// ```no_run
/// use mainstem::prelude::*;
/// use mainstem_server::{Server, Tokens};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let harness = Harness::builder("main", ScriptedModel::new()).build()?;
/// let (token, tokens) = Tokens::generated();
/// println!("token: {token}");
/// let server = Server::new(harness).with_tokens(tokens).build()?;
///
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:7878").await?;
/// server.serve(listener, Default::default()).await?; // until the token given here is cancelled
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Server(Arc<App>);

/// An error of building or running a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// A tenant that has a token can't be opened.
    #[error(transparent)]
    Tenant(#[from] BuildError),
    /// The address can be reached from other machines, and no token is required.
    #[error("{0} can be reached from other machines; require a token")]
    Open(std::net::SocketAddr),
    /// The listener failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Builds a [`Server`].
#[derive(Debug)]
#[must_use]
pub struct Builder {
    harness: Harness,
    tokens: Tokens,
    hosts: Hosts,
    limits: Limits,
    agents: BTreeSet<String>,
    models: BTreeSet<String>,
    roles: Vec<Role>,
    protocols: BTreeSet<Protocol>,
    spans: RequestSpans,
    on_lost: OnLost,
    reach: Reach,
}

impl Builder {
    /// Sets the tokens of callers. By default no token is required: for a server on loopback, or an
    /// application that authenticates its callers itself.
    pub fn with_tokens(mut self, tokens: Tokens) -> Self {
        self.tokens = tokens;
        self
    }

    /// Sets the host names that requests can be sent to; by default those of the loopback.
    pub fn with_hosts(mut self, hosts: Hosts) -> Self {
        self.hosts = hosts;
        self
    }

    /// Lets callers choose another agent than the harness's own to lead a run; none by default.
    /// What the spec of the harness's own agent permits or forbids does not hold for runs that
    /// another leads, nor for the children that work in them: see
    /// [`RunRequest::with_agent`](mainstem::session::RunRequest::with_agent).
    pub fn with_allowed_agent(mut self, id: impl Into<String>) -> Self {
        self.agents.insert(id.into());
        self
    }

    /// Lets callers choose this model for the agent that leads a run, by a name that the harness
    /// can resolve; none by default. Agents that name no model inherit it.
    pub fn with_allowed_model(mut self, name: impl Into<String>) -> Self {
        self.models.insert(name.into());
        self
    }

    /// Lets callers send inputs of this role, besides those of a user. An input of the role
    /// `system` speaks for the operator to the model, and one of the role `assistant` for the
    /// agent: only for callers that are trusted with that.
    pub fn with_allowed_role(mut self, role: Role) -> Self {
        if !self.roles.contains(&role) {
            self.roles.push(role);
        }
        self
    }

    /// Serves a protocol of others beside `/v1`; none by default.
    pub fn with_protocol(mut self, protocol: Protocol) -> Self {
        self.protocols.insert(protocol);
        self
    }

    /// Sets what makes a `tracing` span of a request's
    /// [`traceparent`](https://www.w3.org/TR/trace-context/#traceparent-header); the runs that the
    /// request begins are below it. A program that exports traces can set the span's parent.
    pub fn with_request_span(mut self, span: impl Fn(&str) -> Span + Send + Sync + 'static) -> Self {
        self.spans = RequestSpans(Some(Arc::new(span)));
        self
    }

    /// Sets what becomes of a run whose node has ended, with a journal that nodes share; by default
    /// another node takes it up.
    pub fn with_on_lost(mut self, on_lost: OnLost) -> Self {
        self.on_lost = on_lost;
        self
    }

    /// Allows notifications that callers ask for (of A2A's tasks) to go to a host, or to a network,
    /// whose address is not public.
    pub fn with_notified_host(mut self, host: Host) -> Self {
        self.reach = self.reach.with_host(host);
        self
    }

    /// Sets how many runs execute at once, queued ones included; 64 by default. Further ones are
    /// refused with 429.
    pub fn with_max_runs(mut self, max: usize) -> Self {
        self.limits.runs = max;
        self
    }

    /// Sets how many sessions are open at once. The default is what half of the process's limit of
    /// open files allows, and at most 1024. Beyond it, the least recently used session is closed,
    /// as by [`with_idle_timeout`](Self::with_idle_timeout); if none can be closed, because all
    /// have a run or a reader or are not recorded, a further one is refused with 429.
    pub fn with_max_sessions(mut self, max: usize) -> Self {
        self.limits.sessions = Some(max);
        self
    }

    /// Sets how many readers follow one session; 32 by default. Further ones are refused with 429.
    pub fn with_max_readers(mut self, max: usize) -> Self {
        self.limits.readers_per_session = max;
        self
    }

    /// Sets how many jobs the server runs at once; 16 by default, 0 for none. It begins those that
    /// were added here or at any process that shares its journal.
    pub fn with_max_jobs(mut self, max: usize) -> Self {
        self.limits.jobs = max;
        self
    }

    /// Sets how many jobs of a tenant all servers that share the journal run at once. By default
    /// the number is unlimited. Set the same number on each server.
    pub fn with_max_jobs_per_tenant(mut self, max: usize) -> Self {
        self.limits.jobs_per_tenant = Some(max);
        self
    }

    /// Deletes sessions that are not kept, permanently: as the server begins, and each hour. By
    /// default all are kept.
    pub fn with_retention(mut self, keep: Keep) -> Self {
        self.limits.keep = keep;
        self
    }

    /// Closes sessions that were not requested for this time and have no readers, runs or tasks. By
    /// default sessions stay open as long as the server runs. The next request opens a closed
    /// session again from the journal, as after a restart; without a journal, sessions stay open. A
    /// session is in use while the application holds its
    /// [`Session`](mainstem::prelude::Session), too.
    pub fn with_idle_timeout(mut self, after: Duration) -> Self {
        self.limits.idle = Some(after);
        self
    }

    /// Builds the server. Opens the tenants that have a token, and blocks on the file system.
    ///
    /// # Errors
    /// [`ServerError::Tenant`] if a tenant can't be opened.
    pub fn build(self) -> Result<Server, ServerError> {
        let Self { harness, tokens, hosts, limits, agents, models, roles, .. } = self;
        let Self { protocols, spans, on_lost, reach, .. } = self;
        for tenant in tokens.tenants() {
            harness.tenant(tenant)?;
        }
        Ok(Server(Arc::new(App::new(
            harness,
            tokens,
            hosts,
            limits,
            Served { agents, models, roles, protocols, spans, on_lost, reach },
        ))))
    }
}

impl Server {
    /// Returns a builder of a server of this harness.
    #[expect(clippy::new_ret_no_self, reason = "a server has many settings, so it is built")]
    pub fn new(harness: Harness) -> Builder {
        let (tokens, hosts) = (Tokens::new(), Hosts::new());
        let (agents, models, protocols, spans, on_lost, reach) = Default::default();
        Builder {
            harness,
            tokens,
            hosts,
            limits: DEFAULTS,
            agents,
            models,
            roles: vec![Role::User],
            protocols,
            spans,
            on_lost,
            reach,
        }
    }

    /// Returns the routes, for an application that serves them itself.
    pub fn router(&self) -> Router {
        let protocols = self.0.served.protocols.iter();
        protocols
            .fold(routes(), |routes, protocol| routes.merge(protocol.routes()))
            .fallback(async || Problem::new(Code::NoSuchPath, "no endpoint has this path"))
            .method_not_allowed_fallback(async || {
                let detail = "this path does not take this method";
                Problem::new(Code::MethodNotAllowed, detail)
            })
            .layer(DefaultBodyLimit::max(body::MAX))
            .layer(from_fn_with_state(self.0.clone(), relay))
            .layer(from_fn_with_state(self.0.clone(), guard))
            .layer(from_fn_with_state(self.0.clone(), observe))
            .with_state(self.0.clone())
    }

    /// Serves until the token is cancelled. Then runs are refused and streams end; a call over MCP
    /// ends with its run. Active runs continue; [`Harness::shutdown`] stops them.
    ///
    /// To stop without cutting anything off, [drain](Self::drain) the server, shut the harness down
    /// while readers still see how its runs end, and cancel the token then:
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use mainstem::Harness;
    /// # use mainstem_server::Server;
    /// # use tokio_util::sync::CancellationToken;
    /// # async fn stop(server: Server, harness: Harness, stop: CancellationToken) {
    /// let _ = tokio::time::timeout(Duration::from_secs(30), server.drain()).await;
    /// harness.shutdown(Duration::from_secs(2)).await;
    /// stop.cancel();
    /// # }
    /// ```
    ///
    /// With a journal that nodes share, a request about a session that another node has open is
    /// answered by that node, through the journal's database; and this one answers others. A
    /// session whose node has ended in the middle of a run is taken over.
    ///
    /// Background tasks that go on at remote agents since another process has ended are
    /// [continued](Harness::continue_tasks).
    ///
    /// # Errors
    /// [`ServerError::Open`] if the address can be reached from other machines and no token is
    /// required; [`ServerError::Io`] if the listener has no address.
    pub async fn serve(&self, listener: TcpListener, stop: CancellationToken) -> Result<(), ServerError> {
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() && self.0.tokens.is_empty() {
            return Err(ServerError::Open(address));
        }
        let serving = listen::serve(listener, self.router(), self.0.capacity.guests, self.0.stop.clone());
        tokio::join!(self.work(stop), serving);
        Ok(())
    }

    /// Does what [`serve`](Self::serve) does without a listener, until the token is cancelled: runs
    /// jobs, takes sessions over, and answers the requests of other nodes.
    pub async fn work(&self, stop: CancellationToken) {
        let app = self.0.clone();
        let stopped = async move {
            stop.run_until_cancelled(app.close_idle_sessions()).await;
            app.draining.cancel();
            app.stop.cancel();
        };
        let (until_drain, until_stop) = (&self.0.draining, &self.0.stop);
        let continued = Box::pin(until_drain.run_until_cancelled(continue_tasks(&self.0)));
        let taken_over = Box::pin(until_drain.run_until_cancelled(take_over(&self.0)));
        let pruned = Box::pin(until_drain.run_until_cancelled(prune(&self.0)));
        let answered = Box::pin(until_stop.run_until_cancelled(answer_others(&self.0, self.router())));
        let handed_over = Box::pin(until_stop.run_until_cancelled(self.0.hand_over_sessions()));
        let worked = Box::pin(until_stop.run_until_cancelled(work(&self.0, self.router())));
        let _ = tokio::join!(stopped, continued, taken_over, pruned, answered, handed_over, worked);
    }

    /// Begins no runs or jobs from now on, and waits until the active ones of this process are
    /// over. Everything else is served as before, so that people see how they end, answer and
    /// cancel them. `/readyz` answers that the server is shutting down.
    ///
    /// While [`serve`](Self::serve) or [`work`](Self::work) runs, idle sessions are left to the
    /// other nodes of a journal, as are runs that are queued in it; their readers are sent away.
    ///
    /// This can't be undone. Dropping the future stops the wait alone.
    pub async fn drain(&self) {
        self.0.draining.cancel();
        while self.live_runs() > 0 {
            sleep(DRAIN_POLL).await;
        }
        let recorded = async {
            while self.0.active_jobs.load(Ordering::Relaxed) > 0 {
                sleep(DRAIN_POLL).await;
            }
        };
        // A job whose run is at another node goes on without this one.
        let _ = timeout(JOBS_RECORDED, recorded).await;
    }

    /// Returns how many runs are queued or active.
    pub fn live_runs(&self) -> usize {
        self.0.live_runs()
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("tokens", &self.0.tokens).finish_non_exhaustive()
    }
}

pub(crate) async fn ready(State(app): State<Arc<App>>) -> Response {
    if app.draining.is_cancelled() {
        return shutting_down().left_to_others().into_response();
    }
    match app.health.check(&app).await {
        Ok(()) => "ready\n".into_response(),
        Err(problem) => problem.into_response(),
    }
}

/// Refuses requests to other host names, before all else.
async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let authority = request.uri().authority().map(|authority| authority.as_str().to_owned());
    match app.hosts.check(authority.as_deref(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}
