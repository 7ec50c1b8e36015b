//! The setters of a harness's builder.

use std::{path::PathBuf, sync::Arc, time::Duration};

use mainstem_event::{Clock, Ids, LogOptions};
use mainstem_journal::Journal;
use mainstem_model::{ModelOptions, ModelRegistry};
use mainstem_policy::{Budget, Prices, Rules};
use mainstem_react::{Compaction, Middleware, RepetitionLimits};
use mainstem_session::OnTaskFinished;
use mainstem_spec::{AgentSpec, Skill};
use mainstem_task::TaskStore;
use mainstem_tool::Tool;

#[cfg(doc)]
use super::Harness;
use super::HarnessBuilder;

impl HarnessBuilder {
    /// Sets the agent that leads, by the id of an agent that code or a file declares: with its own
    /// model, prompt, tools and permissions. Agents that name no model inherit its model. A run can
    /// [choose another](crate::session::RunRequest::with_agent).
    ///
    /// [`build`](Self::build) fails if the agent is not declared or can't lead.
    ///
    /// ```
    /// use mainstem::prelude::*;
    ///
    /// let harness = Harness::builder("main", ScriptedModel::new())
    ///     .with_subagent(AgentSpec::new("reviewer", "Reviews changes").with_prompt("Be brief."))
    ///     .with_agent("reviewer")
    ///     .build()?;
    /// assert_eq!(&**harness.agents().root().id(), "reviewer");
    /// # Ok::<(), mainstem::BuildError>(())
    /// ```
    pub fn with_agent(mut self, id: impl Into<String>) -> Self {
        self.leader = Some(id.into());
        self
    }

    /// Sets the root's instructions; without them, the root has those of the declared agent of the
    /// same id.
    pub fn with_system_prompt(mut self, prompt: impl Into<Arc<str>>) -> Self {
        self.system_prompt = Some(prompt.into());
        self
    }

    /// Adds a tool for the root. Children inherit it unless their spec excludes it; if it is an
    /// [agent](crate::subagent::AgentTool), only if their `tools` list it.
    pub fn with_tool(mut self, tool: impl Tool) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Names a tool that the program has and does not give its agents now. The diagnostic of an
    /// agent that lists it then says that the tool is off, and ends with `remedy`, how to turn it
    /// on. Otherwise it says that the tool does not exist. Has no effect on tools that agents have.
    ///
    /// For `shell`, the tools for files and `agent_generate`, the remedy is their setter, unless a
    /// call of this method replaces it.
    ///
    /// ```
    /// use mainstem::prelude::*;
    ///
    /// let harness = Harness::builder("main", ScriptedModel::new())
    ///     .with_subagent(AgentSpec::new("poster", "Writes letters").with_tools(["send_mail"]))
    ///     .with_tool_off("send_mail", "set MAIL_SERVER");
    /// let found = harness.check()?;
    /// let expected = r#"agent "poster" lists tool "send_mail", which is off; set MAIL_SERVER"#;
    /// assert_eq!(found[0].message(), expected);
    /// # Ok::<(), mainstem::BuildError>(())
    /// ```
    pub fn with_tool_off(mut self, name: impl Into<String>, remedy: impl Into<String>) -> Self {
        self.tools_off.insert(name.into(), remedy.into());
        self
    }

    /// Adds code around each model call and tool call, of the root and of its children.
    pub fn with_middleware(mut self, middleware: impl Middleware) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// Sets the directory that the agents work in, whose `subagents/*.md` declare agents and whose
    /// `skills/*/SKILL.md` are skills.
    ///
    /// Before each run the harness checks whether these files have changed, off the async threads,
    /// and reads them again if so: an edit is in effect from then on, and a run keeps what it began
    /// with. An agent whose file has errors stays as it was. [`Harness::diagnostics`] reports both.
    ///
    /// With [`with_file_tools`](Self::with_file_tools) the root gets tools for the files in it,
    /// which children inherit like any other tool; none of them leaves the directory. A child whose
    /// `workspace.mode` is `isolated`, the default, works in a directory of its own below it (see
    /// [`Layout::instance`](crate::workspace::Layout::instance)); a `shared` one, such as
    /// `general-purpose`, works in its parent's.
    pub fn with_workspace(mut self, path: impl Into<PathBuf>) -> Self {
        self.workspace = Some(path.into());
        self
    }

    /// Sets whether the agent files that the workspace has for Claude Code, OpenCode, Copilot,
    /// Gemini CLI, Cursor, Codex and goose are read, too; not by default. Files in `subagents/`
    /// replace those of the same id.
    ///
    /// Keys that are interpreted in another way or ignored are among the harness's diagnostics.
    ///
    /// ```
    /// # let process = std::process::id();
    /// # let workspace = std::env::temp_dir().join(format!("mainstem-foreign-agents-{process}"));
    /// # std::fs::create_dir_all(workspace.join(".claude/agents"))?;
    /// use mainstem::prelude::*;
    ///
    /// let critic = "---\ndescription: Criticises\ncolor: red\n---\n";
    /// std::fs::write(workspace.join(".claude/agents/critic.md"), critic)?;
    /// let build = |foreign| {
    ///     let harness = Harness::builder("main", ScriptedModel::new()).with_workspace(&workspace);
    ///     harness.with_foreign_agents(foreign).build()
    /// };
    ///
    /// let harness = build(true)?;
    /// assert!(harness.agents().catalog().get("critic").is_some());
    /// assert!(harness.diagnostics()[0].message().contains("\"color\" of Claude Code is ignored"));
    /// assert!(build(false)?.agents().catalog().get("critic").is_none());
    /// # std::fs::remove_dir_all(&workspace)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_foreign_agents(mut self, foreign_agents: bool) -> Self {
        self.foreign_agents = foreign_agents;
        self
    }

    /// Adds an agent that can be spawned; it replaces a file of the same id.
    pub fn with_subagent(mut self, spec: AgentSpec) -> Self {
        self.specs.push(spec);
        self
    }

    /// Adds an agent that only this tenant's agents can spawn (see [`Harness::tenant`]). It
    /// replaces a file of the same id, and an agent that [`with_subagent`](Self::with_subagent)
    /// declares for all.
    pub fn with_tenant_subagent(mut self, tenant: impl Into<String>, spec: AgentSpec) -> Self {
        self.tenants.entry(tenant.into()).or_default().push(spec);
        self
    }

    /// Adds instructions that agents read when they need them, by the tool `load_skill`; they
    /// replace a folder of the same name.
    pub fn with_skill(mut self, skill: Skill) -> Self {
        self.skills.push(skill);
        self
    }

    /// Sets the registry of the models that specs name.
    pub fn with_registry(mut self, registry: ModelRegistry) -> Self {
        self.registry = registry;
        self
    }

    /// Sets the options of model calls, which the spec of an agent overrides.
    pub fn with_model_options(mut self, options: ModelOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the most model calls of the root in one run; 10 by default.
    pub fn with_max_iterations(mut self, most: u32) -> Self {
        self.max_iterations = Some(most);
        self
    }

    /// Sets how often an agent may make the same calls with the same results before it is told, and
    /// ended.
    pub fn with_repetition_limits(mut self, limits: RepetitionLimits) -> Self {
        self.repetition = limits;
        self
    }

    /// Sets when and how a conversation that becomes too long for its model is compacted; children
    /// have the same options.
    pub fn with_compaction(mut self, compaction: Compaction) -> Self {
        self.compaction = compaction;
        self
    }

    /// Sets the depth of the deepest agent; 3 by default, 0 forbids children.
    pub fn with_max_depth(mut self, depth: u16) -> Self {
        self.limits.max_depth = depth;
        self
    }

    /// Sets how many children of a session run at once; 16 by default, more wait for their turn.
    pub fn with_max_children(mut self, most: usize) -> Self {
        self.limits.max_children = most;
        self
    }

    /// Sets how many background tasks of a session there can be at once; 16 by default, more are
    /// refused.
    pub fn with_max_tasks(mut self, most: usize) -> Self {
        self.limits.max_tasks = most;
        self
    }

    /// Sets what happens when a background task of the root ends between two runs of its session:
    /// by default the next turn begins with it.
    pub fn with_on_task_finished(mut self, what: OnTaskFinished) -> Self {
        self.on_task_finished = what;
        self
    }

    /// Sets how long a call waits for its child unless the call sets it; 30 s by default.
    pub fn with_wait(mut self, time: Duration) -> Self {
        self.limits.wait = time;
        self
    }

    /// Sets how long a child may be silent before it is ended with `timeout`; 10 min by default,
    /// `Duration::MAX` is unlimited.
    pub fn with_idle_timeout(mut self, time: Duration) -> Self {
        self.limits.idle = time;
        self
    }

    /// Sets the store of the records of background tasks: by default files of the workspace, where
    /// other processes see them, and without a workspace memory. Each [tenant](Harness::tenant) has
    /// a [part](mainstem_task::ScopedTaskStore) of it.
    pub fn with_task_store(mut self, store: impl TaskStore) -> Self {
        self.task_store = Some(Arc::new(store));
        self
    }

    /// Sets the journal that records sessions, so that they continue after this process: see
    /// [`Harness::open_session`]. Without one they are in memory. Each [tenant](Harness::tenant)
    /// has a [part](mainstem_journal::Scoped) of it.
    pub fn with_journal(mut self, journal: impl Journal) -> Self {
        self.journal = Some(Arc::new(journal));
        self
    }

    /// Sets the rules for tool calls: which are allowed, which are denied, and which need approval.
    /// The spec of an agent narrows them for that agent and everything below it.
    ///
    /// A rule that allows a path by name, such as `write_file(path: skills/**)`, also lifts the
    /// protection of files that the next run reads: see
    /// [`Protection`](crate::workspace::Protection).
    pub fn with_permissions(mut self, rules: impl Into<Rules>) -> Self {
        self.permissions = rules.into();
        self
    }

    /// Sets the rules of a file that comes with the workspace. They narrow those of
    /// [`with_permissions`](Self::with_permissions), and can't lift a protection.
    pub fn with_workspace_permissions(mut self, rules: impl Into<Rules>) -> Self {
        self.workspace_permissions = rules.into();
        self
    }

    /// Sets whether the root gets `plan_enter` and `plan_exit`: see
    /// [`RunOptions::plan_mode`](mainstem_session::RunOptions::plan_mode).
    pub fn with_plan_tools(mut self, plan_tools: bool) -> Self {
        self.plan_tools = plan_tools;
        self
    }

    /// Sets whether the root gets `agent_generate`, which drafts a new agent with the root's model
    /// and writes its file into the workspace, never over another; not by default. A child gets it
    /// if its `tools` list it. The draft is a child of its own: in the stream, and in the budget.
    ///
    /// Without a workspace [`build`](Self::build) fails.
    pub fn with_agent_generate(mut self, agent_generate: bool) -> Self {
        self.generate = agent_generate;
        self
    }

    /// Sets what a session may spend, with all its agents: tokens, money, spawns, time. A model
    /// call or a spawn that doesn't fit is refused, and the refusal states what is left. What a
    /// call will use is an estimate (the bytes of the request ÷ 4 + the most it may write),
    /// corrected by the usage that comes back.
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Adds prices of models to the built-in list.
    pub fn with_prices(mut self, prices: Prices) -> Self {
        self.prices = Arc::new(prices);
        self
    }

    /// Sets the source of ids; for tests.
    pub fn with_ids(mut self, ids: impl Ids) -> Self {
        self.ids = Arc::new(ids);
        self
    }

    /// Sets the clock; for tests.
    pub fn with_clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets how much a session's log keeps and lets through.
    pub fn with_log(mut self, options: LogOptions) -> Self {
        self.log = options;
        self
    }
}
