//! The harness: a model, tools, a workspace and agents, combined once and run many times.

mod agents;
mod builder;
#[cfg(feature = "mcp")]
mod offered;

use std::{any::type_name, fmt, future::Future, sync::Arc, time::Duration};

use dashmap::DashMap;
use futures_util::{FutureExt, future::join_all};
use mainstem_declarations::{Diagnostic, Lead, LeaderError, leader};
use mainstem_event::{EventStreamExt, StreamOptions, view::Events};
use mainstem_journal::{Journal, JournalError, Scoped};
use mainstem_message::{IdError, Message, SessionId, TenantName};
use mainstem_react::OutputSchema;
use mainstem_session::{
    DeleteError, OpenError, Records, Run, RunAgents, RunError, RunRequest, Session, Sessions, Store,
};
use mainstem_spec::is_name;
use mainstem_subagent::Limits;
use mainstem_task::{TaskError, TaskSet};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

pub use self::builder::HarnessBuilder;
#[cfg(feature = "mcp")]
pub use self::offered::HarnessAgents;
use self::{agents::Agents, builder::Servers};
use crate::BuildError;

/// An agent with all it needs, ready to run. Cheap to clone; clones share their sessions.
///
/// ```
/// use mainstem::prelude::*;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), mainstem::Error> {
/// let model = ScriptedModel::new().agent("main", [Turn::new().text("Hello.")]);
/// let harness = Harness::builder("main", model).build()?;
///
/// // The reply …
/// assert_eq!(harness.call("Hi").await?.text(), "Hello.");
/// // … or what all agents do, as it happens.
/// let mut run = harness.stream_events("Hi");
/// while let Some(event) = run.next().await {
///     println!("{event}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Harness(Arc<Parts>);

struct Parts {
    builder: Arc<HarnessBuilder>,
    tenant: Option<TenantName>,
    agents: Agents,
    sessions: Sessions,
    tenants: DashMap<String, Harness>,
}

impl Harness {
    /// Returns the live stream of a run in a session of its own. The run starts when the stream is
    /// first polled; dropping it cancels the run.
    ///
    /// The request is a text, a [`Message`], or a [`RunRequest`] with settings of the run. To
    /// continue a session, [open](Self::open_session) it and [run](Session::run) it.
    pub fn stream_events(&self, request: impl Into<RunRequest>) -> Run {
        self.new_session().queue(request)
    }

    /// Returns the live stream in the coarser v1 form.
    pub fn stream(&self, request: impl Into<RunRequest>, options: StreamOptions) -> Events<Run> {
        self.stream_events(request).into_events(options)
    }

    /// Runs to the end and returns the reply: [`stream_events`](Self::stream_events) without the
    /// events. A tool call that needs approval is denied, because no reader can give it.
    ///
    /// # Errors
    /// The run has no reply. Dropping the future cancels the run.
    pub fn call(
        &self,
        request: impl Into<RunRequest>,
    ) -> impl Future<Output = Result<Message, RunError>> + Send {
        self.stream_events(request.into().with_approval(false)).reply().boxed()
    }

    /// Runs to the end and returns the reply as a value of a type. The model is given the type's
    /// schema, which includes its doc comments.
    ///
    /// The answer is checked against the schema, and the model is asked once more if it does not
    /// fit: see [`StructuredOutput`](crate::react::StructuredOutput). A tool call that needs
    /// approval is denied, as by [`call`](Self::call).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use mainstem::prelude::*;
    /// # let verdict = r#"{"score": 4, "why": "clear"}"#;
    /// # let model = ScriptedModel::new().agent("main", [Turn::new().text(verdict)]);
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Verdict {
    ///     /// From 1, bad, to 5, good.
    ///     score: u8,
    ///     why: String,
    /// }
    ///
    /// let harness = Harness::builder("main", model).build()?;
    /// let verdict: Verdict = harness.call_typed("How good is this text? …").await?;
    /// assert_eq!(verdict.score, 4);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The run has no reply, or the reply does not fit; then the error has the value. Dropping the
    /// future cancels the run.
    pub fn call_typed<T: DeserializeOwned + JsonSchema>(
        &self,
        request: impl Into<RunRequest>,
    ) -> impl Future<Output = Result<T, RunError>> + Send {
        let run = OutputSchema::of::<T>()
            .map(|schema| self.stream_events(request.into().with_approval(false).with_output(schema)));
        async move {
            let run =
                run.map_err(|error| RunError::Output { what: type_name::<T>(), why: error.to_string() })?;
            run.reply_as().await
        }
        .boxed()
    }

    /// Returns the session of that id; a new one if it does not exist. It stays open as long as the
    /// harness, or until it is [closed](Self::close_session).
    ///
    /// With a [journal](HarnessBuilder::with_journal), the session's history is restored, and
    /// invocations that were cut off when their process ended have an `AGENT_END`. A session whose
    /// record has failed is opened again once its runs are over.
    ///
    /// # Errors
    /// The text is not an id; the session is open in another process; the journal can't be read or
    /// written; the limit of open sessions is reached. The next call tries again.
    pub async fn open_session(
        &self,
        id: impl TryInto<SessionId, Error: Into<IdError>>,
    ) -> Result<Session, OpenError> {
        self.0.sessions.open(id).await
    }

    /// Removes a session from the open ones; returns `true` if it was one. Once all clones of it
    /// are dropped, it can be opened again, here or by another process.
    pub fn close_session(&self, id: &SessionId) -> bool {
        self.0.sessions.close(id)
    }

    /// Deletes a session permanently, with the records of its background tasks.
    ///
    /// # Errors
    /// The session does not exist, is in use, or can't be deleted.
    pub async fn delete_session(&self, id: &SessionId) -> Result<(), DeleteError> {
        self.0.sessions.delete(id).await
    }

    /// Returns a session with a new id. With a [journal](HarnessBuilder::with_journal), its first
    /// run records it.
    pub fn new_session(&self) -> Session {
        self.0.sessions.begin()
    }

    /// Returns its sessions: those that are open, and those that are recorded.
    pub fn sessions(&self) -> &Sessions {
        &self.0.sessions
    }

    /// Returns the journal that records sessions, if there is one.
    pub fn journal(&self) -> Option<&Arc<dyn Journal>> {
        self.0.sessions.journal()
    }

    /// Returns the same harness for a tenant: with the agents and skills that are for all, those of
    /// the tenant's own directory, and those that [`HarnessBuilder::with_tenant_subagent`] declares
    /// for it.
    ///
    /// A tenant's agents work in `tenants/<name>` of the workspace, which is created if it does not
    /// exist and whose `subagents/` and `skills/` replace those of the workspace. They can't leave
    /// it, and can't spawn or list what belongs to another tenant; sessions, background tasks and
    /// their records are the tenant's own, so that several tenants may use one id. Tools find the
    /// name among the context's attributes, as `tenant`. The root of the harness itself, which is
    /// not a tenant, works in the whole workspace.
    ///
    /// In a [journal](HarnessBuilder::with_journal) and in a
    /// [task store](HarnessBuilder::with_task_store) of the program, the ids of a tenant's sessions
    /// and tasks begin with `<tenant>/`; only the harness without a tenant can access them.
    ///
    /// A tenant lives as long as the harness. The first call for a tenant blocks on the file
    /// system.
    ///
    /// # Errors
    /// The name is not `[a-z0-9][a-z0-9_-]*`; this harness is a tenant's; else as
    /// [`HarnessBuilder::build`].
    pub fn tenant(&self, name: &str) -> Result<Self, BuildError> {
        let parts = &*self.0;
        if let Some(tenant) = parts.tenants.get(name) {
            return Ok(tenant.clone());
        }
        let refused = |why| BuildError::Tenant { name: name.to_owned(), why };
        let valid = self.tenant_name(name).map_err(refused)?;
        let store = parts.sessions.store().clone();
        let tenant = Self::open(parts.builder.clone(), store, Some(valid))?;
        // Another call may have added it meanwhile.
        Ok(parts.tenants.entry(name.to_owned()).or_insert(tenant).clone())
    }

    /// Parses the name of a tenant of this harness.
    fn tenant_name(&self, name: &str) -> Result<TenantName, &'static str> {
        if !is_name(name) {
            return Err("use a-z, 0-9, _ and -, starting with a letter or digit");
        }
        if self.0.tenant.is_some() {
            return Err("a tenant has no tenants");
        }
        name.parse().map_err(|_| "use at most 256 characters")
    }

    fn open(
        builder: Arc<HarnessBuilder>,
        store: Arc<Store>,
        tenant: Option<TenantName>,
    ) -> Result<Self, BuildError> {
        let scope = builder.scope(tenant.as_ref().map(TenantName::as_str))?;
        let tasks = builder.task_set(scope.workspace.as_deref(), tenant.as_ref());
        let files = builder.files_beside(&scope)?;
        let agents = Agents::open(builder.clone(), scope)?;
        let records = match (builder.journal_of_all(), &tenant) {
            (None, _) => Records::new(tasks.clone()),
            (Some(all), None) => Records::new(tasks.clone()).with_journal(all.clone()),
            (Some(all), Some(name)) => {
                let own = Scoped::new(all.clone(), name.clone());
                Records::new(tasks.clone()).with_journal(Arc::new(own))
            }
        };
        let records = files.into_iter().fold(records, Records::with_files);
        let (parts, source, name) = (builder.clone(), Arc::new(agents.clone()), tenant.clone());
        let session = move || {
            let session = parts.session(source.clone(), tasks.clone());
            name.iter().fold(session, |session, name| session.with_attribute("tenant", name.as_str()))
        };
        let sessions = Sessions::new(store, tenant.clone(), records, session);
        Ok(Self(Arc::new(Parts { builder, tenant, agents, sessions, tenants: DashMap::new() })))
    }

    /// Returns the limits of agents; a run can only lower them.
    pub fn limits(&self) -> Limits {
        self.0.builder.limits()
    }

    /// Returns all background tasks, of all sessions; those of a tenant are its own harness's.
    pub fn tasks(&self) -> &TaskSet {
        self.0.sessions.tasks()
    }

    /// Opens the sessions whose background tasks go on at remote agents after the process that
    /// executed them has ended, so that this process continues them. Returns how many were opened.
    /// A session that can't be opened is logged, and continued when it is opened later.
    ///
    /// Sessions of a tenant are included if the tenants share the [task
    /// store](HarnessBuilder::with_task_store); otherwise the [tenant's](Self::tenant) harness
    /// continues them.
    ///
    /// # Errors
    /// The records of the tasks can't be read.
    pub async fn continue_tasks(&self) -> Result<usize, TaskError> {
        let mut opened = 0;
        for id in self.tasks().resumable_sessions().await? {
            match self.open_anywhere(&id).await {
                Ok(is_open) => opened += usize::from(is_open),
                Err(error) => {
                    tracing::warn!(session = %id, %error, "a session with a task at a remote can't be opened");
                }
            }
        }
        Ok(opened)
    }

    /// Opens a session of this harness or, by its id in the whole journal, of a tenant. Returns
    /// `false` if another process has opened it.
    async fn open_anywhere(&self, id: &SessionId) -> Result<bool, Box<dyn std::error::Error>> {
        let opened = match id.as_str().split_once('/').filter(|_| self.0.tenant.is_none()) {
            Some((tenant, own)) => self.tenant(tenant)?.open_session(own).await,
            None => self.open_session(id.as_str()).await,
        };
        match opened {
            Ok(_) => Ok(true),
            Err(OpenError::Journal(JournalError::Busy { .. })) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Leaves the background tasks that go on at remote agents, including those of tenants, to the
    /// process that [continues](Self::continue_tasks) them: they have no end here. Call it before
    /// [`shutdown`](Self::shutdown), which cancels what it finds. Returns the number of tasks.
    ///
    /// A task can be continued if the session is in a journal, the agent's protocol can find a turn
    /// again, and the [task store](HarnessBuilder::with_task_store) outlives the process: without a
    /// workspace or a store, tasks are in memory, and one that is left is lost.
    pub fn leave_tasks(&self) -> usize {
        let tenants = self.0.tenants.iter().map(|tenant| tenant.tasks().leave_resumable());
        tenants.sum::<usize>() + self.tasks().leave_resumable()
    }

    /// Stops all background work, including that of tenants: cancels it, waits for at most `grace`,
    /// then drops the rest. When it returns, all work that the harness spawned has ended, and each
    /// task has an end in its record. MCP servers are stopped last, permanently. Runs that a caller
    /// polls are not affected.
    pub async fn shutdown(&self, grace: Duration) {
        let tenants: Vec<_> = self.0.tenants.iter().map(|tenant| tenant.tasks().clone()).collect();
        join_all(tenants.iter().chain([self.tasks()]).map(|tasks| tasks.shutdown(grace))).await;
        let tenants: Vec<_> = self.0.tenants.iter().map(|tenant| tenant.0.agents.servers().clone()).collect();
        join_all(tenants.iter().chain([self.0.agents.servers()]).map(Servers::shutdown)).await;
    }

    /// Starts the MCP servers that are not running, and waits until their tools are known; what is
    /// wrong with them is then among the [`diagnostics`](Self::diagnostics). Optional: a run that
    /// has their tools does the same.
    pub async fn ready(&self) {
        self.0.agents.servers().ready().await;
    }

    /// Returns the agents of the latest run, or of the first: the root, the agents that it can
    /// spawn, skills and rules.
    pub fn agents(&self) -> RunAgents {
        self.0.agents.current()
    }

    /// Checks that an agent of this id is declared and can lead a run.
    ///
    /// # Errors
    /// The agent is not declared, or is only there to be spawned.
    pub fn check_leader(&self, agent: &str) -> Result<(), LeaderError> {
        leader(self.agents().catalog(), agent).map(drop)
    }

    /// Reads files that have changed and builds the agents of a run that this agent leads, as a run
    /// [with this agent](RunRequest::with_agent) and
    /// [with this model](RunRequest::with_model) does: with the model, prompt, tools, skills and
    /// permissions of the agent's spec, and this harness's limits. `None` stands for the agent that
    /// leads, and for its own model.
    ///
    /// # Errors
    /// The agent is not declared, or is only there to be spawned; the model is unknown; else as
    /// [`HarnessBuilder::build`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn prepare_leader(&self, agent: Option<&str>, model: Option<&str>) -> Result<(), BuildError> {
        let lead = Lead { agent: agent.map(str::to_owned), model: model.map(str::to_owned) };
        self.0.agents.led_by(lead).await.map(drop)
    }

    /// Returns what was wrong with the agents, the skills and the tools of the workspace when they
    /// were last read, and what is wrong with MCP servers now. Errors left something out, warnings
    /// did not. [`HarnessBuilder::build`] reads files, and a run does if files have changed.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let mut found = self.0.agents.diagnostics().to_vec();
        found.extend(self.0.agents.servers().diagnostics());
        found
    }
}

impl fmt::Debug for Harness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Harness").field("agents", &self.agents()).finish_non_exhaustive()
    }
}
