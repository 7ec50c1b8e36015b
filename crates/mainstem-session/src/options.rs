//! What a caller asks of one run.

use std::sync::Arc;

use mainstem_event::OnLost;
use mainstem_message::{Message, RunId};
use mainstem_policy::{Budget, Rules};
use mainstem_react::OutputSchema;
use mainstem_subagent::{Background, SpawnOptions};
use mainstem_tool::ToolSet;
use serde_json::{Map, Value};
use tracing::Span;

/// Settings of one run; all have defaults. A run with an input has them in its [`RunRequest`].
///
/// ```
/// use mainstem_session::RunOptions;
///
/// let mut options = RunOptions::default();
/// options.user = Some("ann".into());
/// options.attributes.insert("tenant".to_owned(), "acme".into());
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RunOptions {
    /// What the run is called; a random id by default.
    pub run_id: Option<RunId>,
    /// On whose behalf; tools and children see it.
    pub user: Option<Arc<str>>,
    /// Whatever tools and children should know besides.
    pub attributes: Map<String, Value>,
    /// How many events the run's agents may be ahead of its reader, each live one may add one; by
    /// default what the session's log says.
    pub buffer: Option<usize>,
    /// What becomes of children that take longer than their parents wait.
    pub spawn: SpawnOptions,
    /// Whether the session plans from this run on: then only read-only tools run, until a person
    /// has accepted a plan. By default the mode of the session is unchanged.
    pub plan_mode: Option<bool>,
    /// What the run may spend, with all its agents and the tasks that they begin; nothing is
    /// limited by default.
    pub budget: Budget,
    /// The form that the root's answer shall have; any by default.
    pub output: Option<OutputSchema>,
    /// What becomes of the run when its node ends; `None` for what the server does.
    pub on_lost: Option<OnLost>,
    /// The id of the agent that leads the run; by default the root of the session's agents.
    pub agent: Option<Arc<str>>,
    /// The name of that agent's model, which agents inherit that name none; by default its own.
    pub model: Option<Arc<str>>,
    /// Further tools of the agent that leads the run, such as those of its caller
    /// ([`ExternalTool`](mainstem_subagent::ExternalTool)); none by default. They are not recorded:
    /// a run that [resumes](crate::Session::resume) the turn is given them again.
    pub tools: ToolSet,
    /// Whether the run only compacts the conversation.
    pub(crate) compacts: bool,
    /// The earlier run whose turn the run takes up.
    pub(crate) resumes: Option<RunId>,
    /// Whether the run is [stored](mainstem_journal::Journal::queue_run) while it is queued, so
    /// that a shutdown leaves it to the process that opens the session next; otherwise a shutdown
    /// cancels it. Off by default.
    pub is_stored: bool,
    /// Whether the run keeps count of what it hands out, for
    /// [`Run::diagnostics`](crate::Run::diagnostics); off by default.
    pub diagnostics: bool,
    /// The `tracing` span that the run's are below; by default the current one when the run begins.
    pub span: Option<Span>,
}

/// All but the output schema, which is compiled by [`OutputSchema::new`].
impl From<mainstem_api::RunOptions> for RunOptions {
    fn from(options: mainstem_api::RunOptions) -> Self {
        let spawn = SpawnOptions::new().with_force_sync(options.force_sync);
        let mut spawn = spawn.with_rules(&options.permissions);
        spawn.is_attended = options.approval.unwrap_or(true);
        spawn.background = options.background;
        (spawn.max_depth, spawn.max_children) = (options.max_depth, options.max_children);
        Self {
            user: options.user.map(Arc::from),
            attributes: options.attributes,
            spawn,
            plan_mode: options.plan_mode,
            budget: options.budget,
            on_lost: options.on_lost,
            ..Self::default()
        }
    }
}

/// An input with the settings of its run: what [`Session::run`](crate::Session::run) and its
/// likes take. A text or a [`Message`] is a request with the default settings.
///
/// ```
/// use mainstem_policy::Budget;
/// use mainstem_session::RunRequest;
///
/// let plain: RunRequest = "Compare Paris and Rome".into();
/// let budget = Budget::default().with_tokens(20_000);
/// let bounded = RunRequest::new("Compare Paris and Rome").with_budget(budget);
/// assert_eq!(plain.input.text(), bounded.input.text());
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunRequest {
    /// What the agent works on.
    pub input: Message,
    /// How.
    pub options: RunOptions,
}

impl RunOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }
}

impl RunRequest {
    /// This input with the default settings.
    pub fn new(input: impl Into<Message>) -> Self {
        Self { input: input.into(), options: RunOptions::new() }
    }

    /// Replaces all settings.
    #[must_use]
    pub fn with_options(mut self, options: RunOptions) -> Self {
        self.options = options;
        self
    }
}

impl From<Message> for RunRequest {
    fn from(input: Message) -> Self {
        Self::new(input)
    }
}

impl From<String> for RunRequest {
    fn from(input: String) -> Self {
        Self::new(input)
    }
}

impl From<&str> for RunRequest {
    fn from(input: &str) -> Self {
        Self::new(input)
    }
}

/// Defines each setter once, for options and for requests.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($($value:ident: $kind:ty),+) |$options:ident| $set:block)+) => {
        impl RunOptions {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(mut self, $($value: $kind),+) -> Self {
                    let $options = &mut self;
                    $set;
                    self
                }
            )+
        }

        impl RunRequest {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(mut self, $($value: $kind),+) -> Self {
                    let $options = &mut self.options;
                    $set;
                    self
                }
            )+
        }
    };
}

setters! {
    /// Sets the run's id, which must be unique, for callers that need it before the run begins.
    with_run_id(id: RunId) |options| { options.run_id = Some(id) }

    /// Sets the agent that leads the run, by its id: with its own model, prompt, tools and
    /// permissions. It is looked up when the run's turn has come; a run whose agent can't lead
    /// yields no event and fails with
    /// [`AgentError::Refused`](mainstem_react::AgentError::Refused).
    with_agent(id: impl Into<Arc<str>>) |options| { options.agent = Some(id.into()) }

    /// Sets the model of the agent that leads the run, by a name that the harness can resolve.
    /// Agents that name no model inherit it. A run whose model is unknown fails as one whose agent
    /// can't lead.
    with_model(name: impl Into<Arc<str>>) |options| { options.model = Some(name.into()) }

    /// Sets the user on whose behalf the run works.
    with_user(user: impl Into<Arc<str>>) |options| { options.user = Some(user.into()) }

    /// Sets how many events the run's agents may be ahead of its reader.
    with_buffer(events: usize) |options| { options.buffer = Some(events) }

    /// Sets whether a call that is out of time stops its child; then nothing becomes a background
    /// task.
    with_force_sync(force_sync: bool) |options| { options.spawn.force_sync = force_sync }

    /// Sets whether requests for approval are answered, by
    /// [`RunHandle::confirm`](crate::RunHandle::confirm) or
    /// [`RunHandle::submit_tool_result`](crate::RunHandle::submit_tool_result); yes by default. If
    /// not, asking is refusing.
    with_approval(is_answered: bool) |options| { options.spawn.is_attended = is_answered }

    /// Sets whether the run begins in plan mode, or leaves plan mode.
    with_plan_mode(plan_mode: bool) |options| { options.plan_mode = Some(plan_mode) }

    /// Sets what the run may spend, with all its agents: a model call or a spawn that doesn't fit
    /// is refused, within the session's budget. When the time is over, the run ends with `timeout`;
    /// time during which it is not polled doesn't count.
    with_budget(budget: Budget) |options| { options.budget = budget }

    /// Sets the JSON schema of the root's answer; see
    /// [`StructuredOutput`](mainstem_react::StructuredOutput) for how it is enforced.
    with_output(schema: OutputSchema) |options| { options.output = Some(schema) }

    /// Sets further tools of the agent that leads the run. A run whose agent has a tool of the same
    /// name yields no event and fails with
    /// [`AgentError::Refused`](mainstem_react::AgentError::Refused).
    with_tools(tools: ToolSet) |options| { options.tools = tools }

    /// Sets whether each event that the run hands out is counted, so that
    /// [`Run::diagnostics`](crate::Run::diagnostics) knows of all of them, however long the run. It
    /// costs a lookup an event, and some hundred bytes an invocation.
    with_diagnostics(diagnostics: bool) |options| { options.diagnostics = diagnostics }

    /// Sets the `tracing` span that the run's are below.
    with_span(span: Span) |options| { options.span = Some(span) }

    /// Sets the depth of the deepest agent of the run; the root is at 0. More than the session's
    /// limit is that limit.
    with_max_depth(depth: u16) |options| { options.spawn.max_depth = Some(depth) }

    /// Sets how many children of the run execute at once, at least 1; capped by the session's
    /// limit.
    with_max_children(most: usize) |options| { options.spawn.max_children = Some(most) }

    /// Adds rules that narrow what all agents of the run may call; a rule that allows has no effect
    /// of its own. They hold for children that continue after the run, too.
    with_rules(rules: impl Into<Rules>) |options| {
        options.spawn.rules = options.spawn.rules.narrowed_by(&rules.into());
    }

    /// Sets what becomes of background tasks when the root has its answer.
    with_background(background: Background) |options| { options.spawn.background = background }

    /// Sets what becomes of the run when its node ends, where nodes share the journal.
    with_on_lost(on_lost: OnLost) |options| { options.on_lost = Some(on_lost) }

    /// Adds an attribute.
    with_attribute(name: impl Into<String>, value: impl Into<Value>) |options| {
        options.attributes.insert(name.into(), value.into());
    }
}
