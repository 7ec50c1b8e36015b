//! A session's agents: who can be spawned, who was.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use dashmap::DashSet;
use mainstem_event::EventSource;
use mainstem_message::{AgentKey, ConfirmId, SessionId, TaskId, ToolCallId};
use mainstem_policy::{Limits as Budget, PlanMode};
use mainstem_react::RunContext;
use mainstem_spec::AgentSpec;
use mainstem_task::{TaskError, TaskRecord, TaskSet};
use mainstem_tool::ToolOutput;

use crate::{
    approval::{AnswerError, People},
    budget::{Spending, Spent},
    catalog::{CatalogEntry, generated::Drafted},
    error::SpawnError,
    options::SpawnOptions,
    spawn::{roster::Roster, slots::Slots, start_order::StartOrder, versions::Versions},
};
use mainstem_event::Decision;

/// How far agents may go.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The deepest agent; the root is at 0. Default 3.
    pub max_depth: u16,
    /// How many children of a session are at work at once; more wait for their turn. Default 16, at
    /// least 1. One that waits for children of its own does not count.
    pub max_children: usize,
    /// How many background tasks of a session there can be at once; more are refused. Default 16.
    pub max_tasks: usize,
    /// How long a call waits for its child, unless it says otherwise. Default 30 s.
    pub wait: Duration,
    /// How long a child may be silent: without an event of its own, and not waiting for children,
    /// tasks or people. Then it ends with `timeout`. Default 10 min; `Duration::MAX` is for ever.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_depth: 3,
            max_children: 16,
            max_tasks: 16,
            wait: Duration::from_secs(30),
            idle: Duration::from_secs(600),
        }
    }
}

/// One session's children. [`enter`](Self::enter) puts it into the context of each of its runs; the
/// tools find it there.
#[derive(Debug)]
pub struct Fleet {
    limits: Limits,
    pub(crate) roster: Roster,
    pub(crate) slots: Slots,
    pub(crate) starts: StartOrder,
    pub(crate) tasks: TaskSet,
    pub(crate) plans: Mutex<PlanMode>,
    pub(crate) versions: Versions,
    pub(crate) people: People,
    pub(crate) spending: Spending,
    /// Tasks whose ends were told by the results of tools, until their records say so.
    pub(crate) told: DashSet<TaskId>,
}

impl Fleet {
    /// A fleet without children, whose background work is done in this set.
    pub fn new(limits: Limits, tasks: TaskSet) -> Self {
        let slots = Slots::new(limits.max_children);
        Self {
            limits,
            roster: Roster::default(),
            slots,
            starts: StartOrder::default(),
            tasks,
            plans: Mutex::default(),
            versions: Versions::default(),
            people: People::default(),
            spending: Spending::default(),
            told: DashSet::new(),
        }
    }

    /// The same with a budget for the whole session.
    #[must_use]
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.spending = Spending::new(budget);
        self
    }

    /// Sets the planning mode that the session had.
    #[must_use]
    pub fn with_plan_mode(mut self, mode: PlanMode) -> Self {
        self.plans = Mutex::new(mode);
        self
    }

    /// Sets the spending of the session in earlier processes.
    #[must_use]
    pub fn with_spent(self, spent: &Spent) -> Self {
        self.spending.restore(spent);
        self
    }

    /// Answers a question that waits, whichever agent asked it.
    ///
    /// # Errors
    /// Nobody asked it, or it was answered already.
    pub fn confirm(&self, id: &ConfirmId, decision: Decision) -> Result<(), AnswerError> {
        self.people.confirm(id, decision)
    }

    /// Gives the result of an external tool's call, whichever agent made it.
    ///
    /// # Errors
    /// No such call waits.
    pub fn submit_tool_result(
        &self,
        call: &ToolCallId,
        result: impl Into<ToolOutput>,
    ) -> Result<(), AnswerError> {
        self.people.submit(call, result.into())
    }

    /// How far agents may go.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The children of the session, in the order of their start.
    pub fn children(&self) -> Vec<mainstem_event::ChildSummary> {
        self.roster.list(None)
    }

    /// Who has this session, among the children; nobody for the root's session, and for an agent
    /// that is a tool.
    pub fn child_of_session(&self, session: &SessionId) -> Option<EventSource> {
        self.roster.source(session)
    }

    /// What a child was spawned as; nothing for the root, and for an agent that is a tool.
    pub fn spec_of(&self, child: &AgentKey) -> Option<Arc<AgentSpec>> {
        self.roster.spec(child)
    }

    /// The deepest agent of the context's run.
    pub(crate) fn max_depth(&self, cx: &RunContext) -> u16 {
        let own = SpawnOptions::of(cx).max_depth;
        own.map_or(self.limits.max_depth, |own| own.min(self.limits.max_depth))
    }

    /// The agent to spawn, if the caller may spawn it.
    pub(crate) fn admit(&self, cx: &RunContext, id: &str) -> Result<CatalogEntry, SpawnError> {
        let (depth, max_depth) = (cx.depth(), self.max_depth(cx));
        if depth >= max_depth {
            return Err(SpawnError::TooDeep { depth, max_depth });
        }
        drop(self.reserve_spawn(cx)?);
        Drafted::spawnable(cx, id)
    }

    /// A task that the caller may ask about: its own; the root may ask about all of its session.
    pub(crate) async fn task(&self, cx: &RunContext, id: &TaskId) -> Result<TaskRecord, SpawnError> {
        let task = self.tasks.get(id).await?;
        let mine = task.parent_session_id == *cx.session_id();
        let below = cx.depth() == 0 && task.root_session_id == *cx.session_id();
        if mine || below { Ok(task) } else { Err(TaskError::Unknown { id: id.clone() }.into()) }
    }

    /// Waits until tasks are over, lending out the caller's own place; what they are then, or when
    /// the time is over.
    pub(crate) async fn await_tasks(
        &self,
        cx: &RunContext,
        ids: &[TaskId],
        time: Duration,
    ) -> Result<Vec<TaskRecord>, SpawnError> {
        let lent = self.slots.lend(cx);
        let over = self.tasks.wait(ids, time).await;
        lent.take_back().await;
        if let Some(tasks) = over? {
            return Ok(tasks);
        }
        let mut tasks = Vec::new();
        for id in ids {
            tasks.push(self.tasks.get(id).await?);
        }
        Ok(tasks)
    }

    /// Whether one more background task may begin.
    pub(crate) fn admit_task(&self, cx: &RunContext) -> Result<(), SpawnError> {
        let (live, max) = (self.tasks.live_below(cx.sink().log().session_id()).len(), self.limits.max_tasks);
        if live < max { Ok(()) } else { Err(SpawnError::TooManyTasks { max }) }
    }
}
