//! The Agent Protocol of AgentScope: a turn is a task of its server.
//!
//! `follow` waits for the task's events and status; what they mean is decided in `decode` (one
//! event) and `fold` (the task so far), which are pure, and `approvals` has the requests that
//! wait.

mod approvals;
mod conversation;
mod decode;
mod fold;
mod follow;
mod service;
mod task;

pub use self::service::AgentScopeServiceAgent;

use std::sync::Arc;

use async_trait::async_trait;
use mainstem_encode::agent_protocol::{Context, DenyRule, Detail, Snapshot, Submit, Verdict};
use mainstem_event::{CancelReason, Decision, fold::RecordedTurn};
use mainstem_message::{ConfirmId, ToolCallId};
use mainstem_outbound::Reach;
use mainstem_policy::{Effect, RuleSet, Rules};
use mainstem_spec::Protocol;
use mainstem_tool::ToolOutput;
use serde_json::Value;

use self::{approvals::Approvals, fold::TaskFold, follow::Follow, task::Task};
use crate::{
    BegunTurn, RemoteAgent, RemoteControl, RemoteError, RemoteTurn,
    declaration::{About, Declaration, Declared},
    http::Connection,
};

const NOT_EDITABLE: &str = "the arguments of a call of a remote agent can't be edited";

/// Why a turn that is found again is not repeated.
const FALLBACK: &str = "the server keeps the events of a task only while it runs";

/// A task that no server has: its state tells what the server can do.
const NO_TASK: &str = "no-such-task";

/// The path below which an address names the agent.
const AGENTS: &str = "/agents/";

/// An agent of a server that speaks AgentScope's Agent Protocol (`/tasks`).
///
/// A turn is a task with the turn's id, so a repeated request begins one task. The stream of events
/// reconnects behind the last one; the status of the task decides its end if the stream does not
/// tell it, and is polled if the server can't stream.
///
/// A further message continues the conversation at a server that can (`mainstem serve --protocol
/// agent-protocol`). At AgentScope's own each task is a conversation, so the earlier turns are sent
/// with the message, as text.
#[derive(Clone, Debug)]
pub struct AgentScopeAgent {
    connection: Connection,
    agent: Option<Arc<str>>,
}

impl AgentScopeAgent {
    /// Creates the agent at a URL: the address of the server, below which `/tasks` is, and then
    /// `/agents/<id>` for one of its agents.
    ///
    /// # Errors
    /// The URL is not valid, or out of reach.
    pub fn at(url: &str, reach: &Reach) -> Result<Self, RemoteError> {
        let (address, agent) = match url.trim_end_matches('/').rsplit_once(AGENTS) {
            Some((address, agent)) => (address, Some(agent.into())),
            None => (url, None),
        };
        Ok(Self { connection: Connection::at(address, reach)?, agent })
    }

    /// Adds a header to every request. Messages do not show its value.
    ///
    /// # Errors
    /// The name or the value is not valid in a header.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, RemoteError> {
        self.connection = self.connection.with_header(name, value)?;
        Ok(self)
    }

    fn submission(&self, turn: &RemoteTurn, input: String) -> Submit {
        let context = Context {
            user_id: turn.user.as_deref().map(str::to_owned),
            parent_session_id: Some(turn.session.as_str().to_owned()),
            session_id: Some(turn.session.as_str().to_owned()),
            stream: Some(true),
            detail: Some(Detail::Verbose.as_str().to_owned()),
            attributes: Some(turn.attributes.clone()).filter(|attributes| !attributes.is_empty()),
            deny_rules: deny_rules(&turn.rules),
        };
        Submit {
            task_id: Some(turn.id.as_str().to_owned()),
            agent_id: self.agent.as_deref().map(str::to_owned),
            input: Some(input),
            context: Some(context),
        }
    }
}

/// Returns the address of a declared agent, which has the id of its declaration unless the URL
/// names another: AgentScope sends that, too.
fn address(Declaration { url, id, .. }: &Declaration) -> String {
    let url = url.trim_end_matches('/');
    if url.contains(AGENTS) { url.to_owned() } else { format!("{url}{AGENTS}{id}") }
}

impl Declared for AgentScopeAgent {
    const PROTOCOL: Protocol = Protocol::AgentScope;

    fn declared(declaration: &Declaration) -> Result<Self, RemoteError> {
        let Self { connection, agent } = Self::at(&address(declaration), &declaration.reach)?;
        Ok(Self { connection: connection.with_headers(&declaration.headers)?, agent })
    }

    async fn describe(&self) -> Result<Option<About>, RemoteError> {
        // The state of a task that does not exist is an answer, too.
        let state: Value = self.connection.get(self.connection.url(&["tasks", NO_TASK])).await?;
        let is_spoken = state["status"].is_string() && state["task_id"].is_string();
        let agent = self.agent.as_deref().unwrap_or_default();
        Ok(is_spoken.then(|| Ok(format!("its tasks are for {agent}"))))
    }
}

#[async_trait]
impl RemoteAgent for AgentScopeAgent {
    async fn begin(&self, turn: RemoteTurn) -> Result<BegunTurn, RemoteError> {
        turn.check_plan_mode("the Agent Protocol")?;
        let task = self.task(&turn);
        let is_continued = turn.history.is_empty() || task.can_continue().await?;
        let input = if is_continued {
            turn.task.clone()
        } else {
            conversation::with_history(&turn.history, &turn.task)
        };
        task.submit(&self.submission(&turn, input)).await?;
        Ok(self.follow(task, turn))
    }

    fn can_find(&self) -> bool {
        true
    }

    /// A task has the turn's id, and a server that has it ignores a further request. A server of
    /// ours repeats its events; AgentScope's own drops them when the task ends.
    async fn find(&self, turn: RemoteTurn, recorded: &RecordedTurn) -> Result<BegunTurn, RemoteError> {
        let task = self.task(&turn);
        match task.known().await? {
            None => self.begin(turn).await,
            Some(_) if self.named(&turn, NO_TASK).can_continue().await? => Ok(self.follow(task, turn)),
            Some(now) => Ok(self.go_on(task, turn, recorded, now)),
        }
    }
}

impl AgentScopeAgent {
    fn task(&self, turn: &RemoteTurn) -> Arc<Task> {
        self.named(turn, turn.id.as_str())
    }

    fn named(&self, turn: &RemoteTurn, id: &str) -> Arc<Task> {
        Arc::new(Task::new(self.connection.of_trace(turn.trace_parent.as_deref()), id))
    }

    fn name(&self) -> &str {
        self.agent.as_deref().unwrap_or("remote")
    }

    /// Reads the events of a task from the first one on.
    fn follow(&self, task: Arc<Task>, turn: RemoteTurn) -> BegunTurn {
        let approvals = Arc::new(Approvals::default());
        let fold = TaskFold::new(self.name(), turn.session, approvals.clone());
        followed(Follow::new(task.clone(), fold), task, approvals)
    }

    /// Reads the events of a task that the record lacks, if the server still has them.
    fn go_on(&self, task: Arc<Task>, turn: RemoteTurn, recorded: &RecordedTurn, now: Snapshot) -> BegunTurn {
        let own = &recorded.own;
        // Each request has had a call.
        let approvals = Arc::new(Approvals::after(own.parts.calls.len()));
        let last = recorded.latest_remote_id().and_then(|id| id.parse().ok());
        let fold = TaskFold::recorded(self.name(), turn.session, approvals.clone(), own);
        let follow = Follow::new(task.clone(), fold.behind(last.unwrap_or_default())).with_state(now);
        followed(follow, task, approvals).with_fallback(FALLBACK)
    }
}

fn followed(follow: Follow, task: Arc<Task>, approvals: Arc<Approvals>) -> BegunTurn {
    BegunTurn::new(follow.into_events(), Arc::new(Control { task, approvals }))
}

/// A task of the server.
struct Control {
    task: Arc<Task>,
    approvals: Arc<Approvals>,
}

#[async_trait]
impl RemoteControl for Control {
    async fn cancel(&self, _: &CancelReason) -> Result<(), RemoteError> {
        self.task.cancel().await
    }

    async fn confirm(&self, id: &ConfirmId, decision: Decision) -> Result<(), RemoteError> {
        match self.approvals.decide(id, decision) {
            Some(decisions) => self.task.resume(decisions.into_iter().map(verdict).collect()).await,
            None => Ok(()),
        }
    }

    async fn submit(&self, _: &ToolCallId, _: ToolOutput) -> Result<(), RemoteError> {
        Err(RemoteError::invalid("the Agent Protocol takes no results of tools from a caller"))
    }
}

/// Returns what the protocol can say of a decision.
fn verdict((call, decision): (ToolCallId, Decision)) -> Verdict {
    let (approved, reason) = match decision {
        Decision::Allow => (true, None),
        Decision::AllowWith(_) => (false, Some(NOT_EDITABLE.to_owned())),
        Decision::Deny(reason) => (false, Some(reason)),
    };
    Verdict { tool_call_id: Some(call.as_str().to_owned()), approved, reason }
}

/// Returns what the protocol can say of the rules: those that deny. A server that asks about a call
/// that another rule is about gets that rule's answer.
fn deny_rules(rules: &Rules) -> Vec<DenyRule> {
    let rules = rules.layers().flat_map(RuleSet::rules).filter(|rule| rule.effect == Effect::Deny);
    rules.map(|rule| DenyRule::of_pattern(&rule.pattern.to_string())).collect()
}
