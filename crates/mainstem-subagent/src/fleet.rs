//! The agents of a session, as data.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use dashmap::DashSet;
use mainstem_event::{ChildSummary, Decision, EventSource};
use mainstem_message::{AgentKey, ConfirmId, SessionId, TaskId, ToolCallId};
use mainstem_policy::{Budget, PlanMode};
use mainstem_spec::AgentSpec;
use mainstem_task::TaskSet;
use mainstem_tool::ToolOutput;

use crate::{
    approval::{AnswerError, Approvals},
    budget::account::{Spending, Spent},
    spawn::{child_limit::ChildLimit, roster::Roster, start_order::StartOrder, versions::Versions},
};

/// The limits of a session's agents.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The depth of the deepest agent; the root is at 0. Default 3.
    pub max_depth: u16,
    /// How many children of a session execute at once; further ones wait. Default 16, at least 1. A
    /// child that waits for children of its own does not count.
    pub max_children: usize,
    /// How many background tasks of a session are open at once; further ones are refused. Default
    /// 16.
    pub max_tasks: usize,
    /// How long a call waits for its child, unless it sets a time. Default 30 s.
    pub wait: Duration,
    /// How long a child may be silent: without an event, and without waiting for children, tasks or
    /// approvals. Then it ends with `timeout`. Default 10 min; `Duration::MAX` turns this off.
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

/// The children of one session. [`enter`](Self::enter) puts it into the context of each of its
/// runs, where the tools find it.
#[derive(Debug)]
pub struct Fleet {
    limits: Limits,
    pub(crate) roster: Roster,
    pub(crate) child_limit: ChildLimit,
    pub(crate) starts: StartOrder,
    pub(crate) tasks: TaskSet,
    pub(crate) plans: Mutex<PlanMode>,
    pub(crate) versions: Versions,
    pub(crate) approvals: Approvals,
    pub(crate) spending: Spending,
    /// Tasks whose ends the results of tools have reported, until their records say so.
    pub(crate) told: DashSet<TaskId>,
}

impl Fleet {
    /// Creates a fleet without children, whose background tasks run in `tasks`.
    pub fn new(limits: Limits, tasks: TaskSet) -> Self {
        let child_limit = ChildLimit::new(limits.max_children);
        Self {
            limits,
            roster: Roster::default(),
            child_limit,
            starts: StartOrder::default(),
            tasks,
            plans: Mutex::default(),
            versions: Versions::default(),
            approvals: Approvals::default(),
            spending: Spending::default(),
            told: DashSet::new(),
        }
    }

    /// Sets a budget for the whole session.
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

    /// Answers an open approval request of any agent.
    ///
    /// # Errors
    /// The request does not exist, or was answered already.
    pub fn confirm(&self, id: &ConfirmId, decision: Decision) -> Result<(), AnswerError> {
        self.approvals.confirm(id, decision)
    }

    /// Gives the result of an external tool's call, of any agent.
    ///
    /// # Errors
    /// The call does not wait for a result.
    pub fn submit_tool_result(
        &self,
        call: &ToolCallId,
        result: impl Into<ToolOutput>,
    ) -> Result<(), AnswerError> {
        self.approvals.submit(call, result.into())
    }

    /// Returns the limits of the session's agents.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Returns the children of the session, in the order of their start.
    pub fn children(&self) -> Vec<ChildSummary> {
        self.roster.list(None)
    }

    /// Returns the child that has this session; `None` for the root's session, and for an agent
    /// that is a tool.
    pub fn child_of_session(&self, session: &SessionId) -> Option<EventSource> {
        self.roster.source(session)
    }

    /// Returns what a child was spawned as; `None` for the root, and for an agent that is a tool.
    pub fn spec_of(&self, child: &AgentKey) -> Option<Arc<AgentSpec>> {
        self.roster.spec(child)
    }
}
