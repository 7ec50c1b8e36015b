//! Mainstem's own protocol: an agent of another `mainstem serve`.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::StreamExt;
use mainstem_api::{
    AnyRun, AnySession, Begun, Code, Error, Host, NewRun, NewToolResult, RunOptions, RunState, RunView,
};
use mainstem_client::{RemoteSession, Server};
use mainstem_event::{AgentEvent, Background, CancelReason, Decision, fold::RecordedTurn};
use mainstem_message::{ConfirmId, ContentBlock, ToolCallId, ToolState};
use mainstem_outbound::{Reach, Secrets};
use mainstem_spec::Protocol;
use mainstem_tool::ToolOutput;
use tokio::time::sleep;

use crate::{
    BegunTurn, RemoteAgent, RemoteControl, RemoteError, RemoteEvent, RemoteTurn,
    declaration::{About, Declaration, Declared},
};

/// The largest response of a remote, in bytes.
const MAX_RESPONSE: usize = 32 << 20;

/// How often an overloaded server is asked again, after how long unless it says, and at most.
const RETRIES: u32 = 5;
const INTERVAL: Duration = Duration::from_secs(1);
const MAX_WAIT: Duration = Duration::from_secs(30);

/// The pause before a turn is begun again whose session is not free yet; a later one is longer.
const RELEASE: Duration = Duration::from_millis(50);

/// The path below which a server has its agents.
pub(crate) const AGENTS: &str = "/v1/agents/";

/// An agent of a Mainstem server. Its session there has the id of the child's session here.
///
/// The stream reconnects behind the last event after a lost connection, and a request to begin a
/// turn that is repeated begins it once.
#[derive(Clone, Debug)]
pub struct MainstemAgent {
    server: Server,
    agent: Option<Arc<str>>,
    secrets: Arc<Secrets>,
}

impl MainstemAgent {
    /// Creates the agent at a URL: `https://host/v1/agents/<id>`, or the server's address for the
    /// agent that leads its runs.
    ///
    /// # Errors
    /// The URL is not valid, or out of reach.
    pub fn at(url: &str, reach: &Reach) -> Result<Self, RemoteError> {
        let (address, agent) = match url.trim_end_matches('/').rsplit_once(AGENTS) {
            Some((address, agent)) => (address, Some(agent.into())),
            None => (url, None),
        };
        let server = Server::within(address, reach).map_err(|error| failed(&Secrets::default(), &error))?;
        Ok(Self { server: server.with_max_response(MAX_RESPONSE), agent, secrets: Arc::default() })
    }

    /// Adds a header to every request. Messages do not show its value.
    ///
    /// # Errors
    /// The name or the value is not valid in a header.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, RemoteError> {
        Arc::make_mut(&mut self.secrets).add_header(value);
        let server = self.server.with_header(name, value);
        self.server = server.map_err(|error| failed(&self.secrets, &error))?;
        Ok(self)
    }

    fn new_run(&self, turn: &RemoteTurn) -> NewRun {
        let run = NewRun::new(turn.task.as_str()).with_options(options(turn));
        NewRun { agent: self.agent.as_deref().map(str::to_owned), ..run }
    }
}

/// Returns what a Mainstem server is told of a turn, over any protocol.
pub(crate) fn options(turn: &RemoteTurn) -> RunOptions {
    RunOptions {
        user: turn.user.as_deref().map(str::to_owned),
        attributes: turn.attributes.clone(),
        budget: turn.budget,
        permissions: turn.rules.clone(),
        // A further turn ends the plan mode that an earlier one has begun.
        plan_mode: (turn.plan_mode || !turn.history.is_empty()).then_some(turn.plan_mode),
        approval: Some(turn.is_attended),
        max_depth: Some(turn.levels),
        // The turn is over when all that it has started is.
        background: Background::Wait,
        ..RunOptions::default()
    }
}

impl Declared for MainstemAgent {
    const PROTOCOL: Protocol = Protocol::Mainstem;

    fn declared(declaration: &Declaration) -> Result<Self, RemoteError> {
        let headers = &declaration.headers;
        let secrets = Arc::new(headers.secrets.clone());
        let agent = Self { secrets, ..Self::at(&declaration.url, &declaration.reach)? };
        headers.values.iter().try_fold(agent, |agent, (name, value)| agent.with_header(name, value))
    }

    async fn describe(&self) -> Result<Option<About>, RemoteError> {
        let is_ours = |error: &Error| [Code::NoToken, Code::BadToken].iter().any(|code| error.has_code(code));
        let agents = match self.server.agents().await {
            Ok(agents) => agents,
            // It is a Mainstem server, whose turns will be refused, too.
            Err(error) if is_ours(&error) => return Ok(Some(Err(failed(&self.secrets, &error)))),
            Err(error) => return Err(failed(&self.secrets, &error)),
        };
        let id = self.agent.as_deref().unwrap_or(&agents.runs);
        let is_led = agents.runs == id;
        let view = agents.items.iter().find(|agent| agent.id == id);
        Ok(Some(match view {
            Some(view) if view.runnable || is_led => Ok(format!("{id}: {}", view.description)),
            Some(_) => {
                Err(RemoteError::refused(format!("its operator does not let callers run the agent {id:?}")))
            }
            None if is_led => Ok(format!("{id} leads its runs")),
            None => Err(RemoteError::refused(format!("the server has no agent {id:?}"))),
        }))
    }
}

#[async_trait]
impl RemoteAgent for MainstemAgent {
    async fn begin(&self, turn: RemoteTurn) -> Result<BegunTurn, RemoteError> {
        let (server, session) = self.session(&turn)?;
        let begun = begin(&session, &turn, self.new_run(&turn)).await;
        Ok(self.follow(server, session, begun.map_err(|error| failed(&self.secrets, &error))?))
    }

    fn can_find(&self) -> bool {
        true
    }

    async fn find(&self, turn: RemoteTurn, recorded: &RecordedTurn) -> Result<BegunTurn, RemoteError> {
        let (server, session) = self.session(&turn)?;
        let begun = find(&session, &turn, self.new_run(&turn), recorded.latest_remote_id()).await;
        let begun = begun.map_err(|error| failed(&self.secrets, &error))?;
        let begun = begun.ok_or_else(|| RemoteError::refused("the server no longer has the turn"))?;
        Ok(self.follow(server, session, begun))
    }
}

impl MainstemAgent {
    fn session(&self, turn: &RemoteTurn) -> Result<(Server, RemoteSession), RemoteError> {
        let error = |error: Error| failed(&self.secrets, &error);
        let mut server = self.server.clone();
        if let Some(trace) = &turn.trace_parent {
            server = server.with_header("traceparent", trace).map_err(error)?;
        }
        let session = server.open(turn.session.clone()).map_err(error)?;
        Ok((server, session))
    }

    fn follow(&self, server: Server, session: RemoteSession, Begun { run, events }: Begun) -> BegunTurn {
        let secrets = self.secrets.clone();
        let events = events.map(move |event| match event {
            Ok(event) => Ok(received(&event)),
            Err(error) => Err(failed(&secrets, &error)),
        });
        let control = Control { server, run, session, secrets: self.secrets.clone() };
        BegunTurn::new(events.boxed(), Arc::new(control))
    }
}

/// Begins a run. A server that is overloaded is asked again; the key makes that safe.
async fn begin(session: &RemoteSession, turn: &RemoteTurn, mut run: NewRun) -> Result<Begun, Error> {
    let mut attempts = 0;
    loop {
        // Another request has another key.
        let key = if run.queue { format!("{}-queued", turn.id) } else { turn.id.to_string() };
        match session.run_with_key(&key, run.clone()).await {
            // The server has a lower limit of its own; the runner holds it to ours.
            Err(refused) if run.options.max_depth.is_some() && is_too_deep(&refused) => {
                run.options.max_depth = None;
            }
            // The end of the turn before is shown a moment before the session is free. A turn that
            // an earlier process of this side has begun may go on: this one comes after it.
            Err(active) if active.has_code(&Code::RunActive) && !run.queue => {
                attempts += 1;
                sleep(RELEASE * attempts).await;
                run.queue = attempts >= RETRIES;
            }
            Err(busy) if attempts < RETRIES && busy.problem().is_some() && busy.is_retryable() => {
                attempts += 1;
                sleep(busy.retry_after().unwrap_or(INTERVAL).min(MAX_WAIT)).await;
            }
            begun => return begun,
        }
    }
}

/// Finds the run of a turn: the latest of the session that began before the event with the id
/// `latest`. Without a recorded event, the request may not have arrived, and is repeated; if its
/// key is known with another body, the budget of which has changed, the session's latest run is the
/// turn's.
async fn find(
    session: &RemoteSession,
    turn: &RemoteTurn,
    run: NewRun,
    latest: Option<&str>,
) -> Result<Option<Begun>, Error> {
    let seq = latest.and_then(|id| id.rsplit_once('.')?.1.parse().ok());
    let seq = match seq {
        Some(seq) => seq,
        None => match begin(session, turn, run).await {
            Err(error) if error.has_code(&Code::IdempotencyKeyReused) => u64::MAX,
            begun => return begun.map(Some),
        },
    };
    let runs = session.runs().await?;
    // One that was cancelled in the queue has used nothing.
    let has_begun = |run: &&RunView| run.status != RunState::Cancelled || run.usage.is_some();
    let run = runs.iter().filter(has_begun).rfind(|run| run.first_seq <= seq);
    Ok(run.map(|run| session.begun(run)))
}

/// Returns `true` if a server refuses the depth, because its own limit is lower.
fn is_too_deep(error: &Error) -> bool {
    let errors = error.problem().and_then(|problem| problem.more.get("errors")?.as_array());
    errors.into_iter().flatten().any(|error| error["pointer"] == "/options/max_depth")
}

fn received(event: &AgentEvent) -> RemoteEvent {
    let id = format!("{}.{}", event.origin.session_id, event.seq);
    RemoteEvent::new(event.kind.clone()).with_source(event.origin.source.clone()).with_id(id)
}

/// A run of the server.
struct Control {
    server: Server,
    run: Arc<dyn AnyRun>,
    session: RemoteSession,
    secrets: Arc<Secrets>,
}

#[async_trait]
impl RemoteControl for Control {
    async fn cancel(&self, reason: &CancelReason) -> Result<(), RemoteError> {
        self.stop(reason).await.map_err(|error| failed(&self.secrets, &error))
    }

    async fn confirm(&self, id: &ConfirmId, decision: Decision) -> Result<(), RemoteError> {
        self.session.confirm(id, decision).await.map_err(|error| failed(&self.secrets, &error))
    }

    async fn submit(&self, call: &ToolCallId, output: ToolOutput) -> Result<(), RemoteError> {
        let (content, state) = output.into_parts();
        let text = content.iter().filter_map(|block| match block {
            ContentBlock::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        let result = NewToolResult { content: text.collect(), is_error: state != ToolState::Success };
        self.session.submit(call, &result).await.map_err(|error| failed(&self.secrets, &error))
    }
}

impl Control {
    /// Cancels the run, and before it the background tasks of its session, which a cancel of a run
    /// spares: this side stops listening when the run has ended.
    async fn stop(&self, reason: &CancelReason) -> Result<(), Error> {
        let tasks = self.stop_tasks().await;
        self.run.cancel(reason.clone()).await?;
        tasks
    }

    async fn stop_tasks(&self) -> Result<(), Error> {
        for task in self.session.tasks().await?.iter().filter(|task| !task.is_over()) {
            self.server.cancel_task(&task.id).await?;
        }
        Ok(())
    }
}

fn failed(secrets: &Secrets, error: &Error) -> RemoteError {
    let message = secrets.redact(&error.to_string());
    match error {
        Error::Unreachable { .. } => RemoteError::unreachable(message),
        Error::Refused { problem, .. } => RemoteError::Refused { message, status: Some(problem.status) },
        _ => RemoteError::invalid(message),
    }
}
