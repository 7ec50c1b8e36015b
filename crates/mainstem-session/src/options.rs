//! What a caller may say about one run.

use std::sync::Arc;

use mainstem_message::RunId;
use mainstem_policy::Limits;
use mainstem_react::OutputSchema;
use mainstem_subagent::{Assembly, Background, SpawnOptions};
use serde_json::{Map, Value};

/// Settings of one run; all have defaults.
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
    pub budget: Limits,
    /// The form that the root's answer shall have; any by default.
    pub output: Option<OutputSchema>,
    /// Who works in it; by default those whom the session finds when the run's turn has come.
    pub assembly: Option<Arc<Assembly>>,
    /// Whether the run keeps count of what it hands out, for
    /// [`Run::diagnostics`](crate::Run::diagnostics); off by default.
    pub diagnostics: bool,
}

/// All but the output schema, which is compiled by [`OutputSchema::new`].
impl From<mainstem_api::RunOptions> for RunOptions {
    fn from(options: mainstem_api::RunOptions) -> Self {
        let mut spawn = SpawnOptions::new().with_force_sync(options.force_sync);
        spawn.is_attended = options.people.unwrap_or(true);
        spawn.background = options.background;
        (spawn.max_depth, spawn.max_children) = (options.max_depth, options.max_children);
        Self {
            user: options.user.map(Arc::from),
            attributes: options.attributes,
            spawn,
            plan_mode: options.plan_mode,
            budget: options.budget,
            ..Self::default()
        }
    }
}

impl RunOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the run's id, which must be unique, for callers that need it before the run begins.
    #[must_use]
    pub fn with_run_id(mut self, id: impl Into<RunId>) -> Self {
        self.run_id = Some(id.into());
        self
    }

    /// On whose behalf.
    #[must_use]
    pub fn with_user(mut self, user: impl Into<Arc<str>>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// How many events the run's agents may be ahead of its reader.
    #[must_use]
    pub fn with_buffer(mut self, events: usize) -> Self {
        self.buffer = Some(events);
        self
    }

    /// A call that is out of time stops its child; nothing becomes a background task.
    #[must_use]
    pub fn with_force_sync(mut self, force_sync: bool) -> Self {
        self.spawn.force_sync = force_sync;
        self
    }

    /// Sets whether requests for approval are answered, by
    /// [`RunHandle::confirm`](crate::RunHandle::confirm) or
    /// [`RunHandle::submit_tool_result`](crate::RunHandle::submit_tool_result); yes by default. If
    /// not, asking is refusing.
    #[must_use]
    pub fn with_people(mut self, has_people: bool) -> Self {
        self.spawn.is_attended = has_people;
        self
    }

    /// Begins the run in plan mode, or leaves plan mode.
    #[must_use]
    pub fn with_plan_mode(mut self, plan_mode: bool) -> Self {
        self.plan_mode = Some(plan_mode);
        self
    }

    /// What the run may spend, with all its agents: a model call or a spawn that doesn't fit is
    /// refused, within the session's budget. When the time is over, the run ends with `timeout`;
    /// time during which it is not polled doesn't count.
    #[must_use]
    pub fn with_budget(mut self, budget: Limits) -> Self {
        self.budget = budget;
        self
    }

    /// The root's answer shall be JSON of this schema; see
    /// [`StructuredOutput`](mainstem_react::StructuredOutput) for how it comes to be.
    #[must_use]
    pub fn with_output(mut self, schema: OutputSchema) -> Self {
        self.output = Some(schema);
        self
    }

    /// Lets others work in the run than those whom the session would find; what was said before is
    /// known to them, too.
    ///
    /// They are those who were chosen, whatever has changed when the run's turn comes, also in
    /// turns that the session begins by itself after it
    /// ([`OnTaskFinished`](crate::OnTaskFinished)).
    #[must_use]
    pub fn with_assembly(mut self, assembly: Arc<Assembly>) -> Self {
        self.assembly = Some(assembly);
        self
    }

    /// Keeps count of each event that the run hands out, so that
    /// [`Run::diagnostics`](crate::Run::diagnostics) knows of all of them, however long the run. It
    /// costs a lookup an event, and some hundred bytes an invocation.
    #[must_use]
    pub fn with_diagnostics(mut self, diagnostics: bool) -> Self {
        self.diagnostics = diagnostics;
        self
    }

    /// The deepest agent of the run; the root is at 0. More than the session's limit is that limit.
    #[must_use]
    pub fn with_max_depth(mut self, depth: u16) -> Self {
        self.spawn.max_depth = Some(depth);
        self
    }

    /// Sets how many children of the run execute at once, at least 1; capped by the session's
    /// limit.
    #[must_use]
    pub fn with_max_children(mut self, most: usize) -> Self {
        self.spawn.max_children = Some(most);
        self
    }

    /// What becomes of background tasks when the root has its answer.
    #[must_use]
    pub fn with_background(mut self, background: Background) -> Self {
        self.spawn.background = background;
        self
    }

    /// Adds an attribute.
    #[must_use]
    pub fn with_attribute(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.attributes.insert(name.into(), value.into());
        self
    }
}
