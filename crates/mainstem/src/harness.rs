//! The harness: a model, tools, a workspace and agents, put together once and run many times.

mod builder;

use std::{fmt, future::Future, sync::Arc, time::Duration};

use dashmap::DashMap;
use futures_util::FutureExt;
use mainstem_event::{Clock, EventStreamExt, Ids, LogOptions, StreamOptions, view::Events};
use mainstem_message::{Message, SessionId};
use mainstem_policy::{Limits as Budget, Prices, Rules};
use mainstem_react::Agent;
use mainstem_session::{Run, RunError, RunOptions, Session};
use mainstem_spec::{Severity, SpecError};
use mainstem_subagent::{Catalog, CatalogError, Limits};
use mainstem_task::TaskSet;
use mainstem_tool::Artifacts;

pub use self::builder::HarnessBuilder;

/// An agent with all it needs, ready to run. Cheap to clone; clones share their sessions.
#[derive(Clone)]
pub struct Harness(Arc<Parts>);

struct Parts {
    agent: Agent,
    catalog: Arc<Catalog>,
    limits: Limits,
    ids: Arc<dyn Ids>,
    clock: Arc<dyn Clock>,
    log: LogOptions,
    warnings: Warnings,
    tasks: TaskSet,
    rules: Rules,
    budget: Budget,
    prices: Arc<Prices>,
    artifacts: Option<Arc<dyn Artifacts>>,
    sessions: DashMap<SessionId, Session>,
}

/// What was wrong with agents that came from files, and with tools that both the program and the workspace bring; agents built in code
/// fail the build instead.
#[derive(Debug, Default)]
struct Warnings {
    specs: Vec<SpecError>,
    agents: Vec<CatalogError>,
    /// Names.
    tools: Vec<String>,
}

impl Harness {
    /// The live stream of a run in a session of its own. Nothing happens before it is polled; dropping it cancels the run.
    pub fn stream_events(&self, input: impl Into<Message>) -> Run {
        self.stream_events_with(input, RunOptions::new())
    }

    /// The same with options, such as the session to go on with.
    pub fn stream_events_with(&self, input: impl Into<Message>, options: RunOptions) -> Run {
        let session = match &options.session {
            Some(id) => self.session(id.clone()),
            None => self.new_session(None),
        };
        session.run(input, options)
    }

    /// The live stream in the coarser v1 form.
    pub fn stream(&self, input: impl Into<Message>, options: StreamOptions) -> Events<Run> {
        self.stream_events(input).into_events(options)
    }

    /// Only the reply. The same path as [`stream_events`](Self::stream_events), read to its end; a tool call about which a person would be
    /// asked is denied.
    ///
    /// # Errors
    /// Why there is no reply. Dropping the future cancels the run.
    pub fn call(&self, input: impl Into<Message>) -> impl Future<Output = Result<Message, RunError>> + Send {
        // Nobody reads along, so nobody can be asked.
        self.stream_events_with(input, RunOptions::new().with_people(false)).reply().boxed()
    }

    /// The session of that id; a new one if there is none yet. It is kept as long as the harness.
    pub fn session(&self, id: impl Into<SessionId>) -> Session {
        let id = id.into();
        self.0.sessions.entry(id.clone()).or_insert_with(|| self.new_session(Some(id))).clone()
    }

    fn new_session(&self, id: Option<SessionId>) -> Session {
        let parts = &*self.0;
        let session = Session::builder(parts.agent.clone())
            .catalog(parts.catalog.clone())
            .limits(parts.limits)
            .tasks(parts.tasks.clone())
            .rules(parts.rules.clone())
            .budget(parts.budget)
            .prices(parts.prices.clone())
            .artifacts(parts.artifacts.clone())
            .ids(parts.ids.clone())
            .clock(parts.clock.clone())
            .log(parts.log.clone());
        match id {
            Some(id) => session.id(id).build(),
            None => session.build(),
        }
    }

    /// All background tasks, of all sessions.
    pub fn tasks(&self) -> &TaskSet {
        &self.0.tasks
    }

    /// Stops all background work: asks it to stop, waits so long, then drops what is left. When it returns, nothing that the harness
    /// spawned is alive, and each task has an end in its record. Runs that somebody polls are not touched.
    pub async fn shutdown(&self, grace: Duration) {
        self.0.tasks.shutdown(grace).await;
    }

    /// The agent that runs.
    pub fn agent(&self) -> &Agent {
        &self.0.agent
    }

    /// The agents that it can spawn.
    pub fn catalog(&self) -> &Catalog {
        &self.0.catalog
    }

    /// What is wrong with the agents and the tools of the workspace, in words, each with its severity: errors left an agent out,
    /// warnings did not.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let Warnings { specs, agents, tools } = &self.0.warnings;
        let agents = agents.iter().map(|problem| {
            let severity = if problem.is_warning() { Severity::Warning } else { Severity::Error };
            format!("{severity}: {problem}")
        });
        let tools = tools.iter().map(|tool| {
            format!("{}: the program has a tool {tool:?}, so the workspace's is not used", Severity::Warning)
        });
        specs.iter().map(ToString::to_string).chain(agents).chain(tools)
    }
}

impl fmt::Debug for Harness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Harness").field("agent", &self.0.agent).finish_non_exhaustive()
    }
}
