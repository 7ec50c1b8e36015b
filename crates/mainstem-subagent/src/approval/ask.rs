//! Asks a person, or the caller, about a tool call of an agent.

use std::{future::pending, sync::Arc};

use mainstem_event::{ConfirmResult, Decision, EventKind};
use mainstem_message::{ConfirmId, TaskId, ToolCall, ToolResult};
use mainstem_react::RunContext;
use mainstem_task::TaskSet;
use mainstem_tool::ToolOutput;

use crate::member::Member;

/// The reason of a request whose agent ended first.
const STOPPED: &str = "the agent was stopped before the request was answered";

impl Member {
    /// Asks a person to approve a call, because of a rule if one is given; only that call waits. In
    /// an unattended run it is denied.
    pub(crate) async fn ask(&self, cx: &RunContext, call: ToolCall, rule: Option<Arc<str>>) -> Decision {
        self.ask_unless(cx, call, rule, pending()).await
    }

    /// Asks a person to approve a call, unless it is decided elsewhere first.
    pub(crate) async fn ask_unless(
        &self,
        cx: &RunContext,
        call: ToolCall,
        rule: Option<Arc<str>>,
        elsewhere: impl Future<Output = Decision> + Send,
    ) -> Decision {
        if !self.options.is_attended {
            return Decision::Deny("it needs approval, and the run is unattended".to_owned());
        }
        let id = ConfirmId::from_lossy(cx.new_id("confirm-"));
        let decided = self.fleet.approvals.request(&id);
        let mut request = Request { member: self, cx, id, call, decision: None };
        let asked = EventKind::require_user_confirm(request.id.clone(), vec![request.call.clone()]);
        cx.emit(rule.into_iter().fold(asked, EventKind::with_rule));
        let decided = async {
            tokio::select! {
                biased;
                here = decided => here.ok(),
                elsewhere = elsewhere => Some(elsewhere),
            }
        };
        request.decision = self.until_answered(cx, decided).await;
        request.decision.clone().unwrap_or_else(|| Decision::Deny(STOPPED.to_owned()))
    }

    /// Has a call run by the caller, unless it is run elsewhere first; `None` if the agent is
    /// stopped first.
    pub(crate) async fn run_externally(
        &self,
        cx: &RunContext,
        call: ToolCall,
        elsewhere: impl Future<Output = ToolOutput> + Send,
    ) -> Option<ToolOutput> {
        if !self.options.is_attended {
            return Some(ToolOutput::failed("this tool is run by the caller, and the run is unattended"));
        }
        let approvals = &self.fleet.approvals;
        let done = approvals.request_result(&call.id);
        cx.emit(EventKind::require_external_execution(vec![call.clone()]));
        let output = async {
            tokio::select! {
                biased;
                here = done => here.ok(),
                elsewhere = elsewhere => Some(elsewhere),
            }
        };
        let output = self.until_answered(cx, output).await;
        approvals.forget_closed();
        let output = cx.bounded(output?).await;
        let (content, state) = output.clone().into_parts();
        let result = ToolResult { tool_call_id: call.id, name: call.name, content, state };
        cx.emit(EventKind::ExternalExecutionResult { tool_results: vec![result] });
        Some(output)
    }

    /// Waits for an answer with the agent's permit released; a task that it is part of is marked as
    /// waiting. Returns `None` if the agent is stopped first.
    async fn until_answered<T>(&self, cx: &RunContext, answer: impl Future<Output = Option<T>>) -> Option<T> {
        let fleet = &self.fleet;
        let released = fleet.child_limit.release_while_waiting(self.caller(cx));
        let waiting = WaitingTask::begin(&fleet.tasks, cx.sink().task().cloned()).await;
        let answer = tokio::select! {
            biased;
            () = cx.cancelled() => None,
            answer = answer => answer,
        };
        waiting.end().await;
        released.reacquire().await;
        answer
    }
}

/// The mark of a task that waits. If its wait is dropped, the task set removes the mark.
struct WaitingTask<'a> {
    tasks: &'a TaskSet,
    task: Option<TaskId>,
}

impl<'a> WaitingTask<'a> {
    async fn begin(tasks: &'a TaskSet, task: Option<TaskId>) -> Self {
        let waiting = Self { tasks, task };
        if let Some(task) = &waiting.task {
            tasks.set_waiting(task, true).await;
        }
        waiting
    }

    async fn end(mut self) {
        if let Some(task) = self.task.take() {
            self.tasks.set_waiting(&task, false).await;
        }
    }
}

impl Drop for WaitingTask<'_> {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            let tasks = self.tasks.clone();
            self.tasks.drive(async move { tasks.set_waiting(&task, false).await });
        }
    }
}

/// An open approval request; emits its result on drop, also when the agent is dropped.
struct Request<'a> {
    member: &'a Member,
    cx: &'a RunContext,
    id: ConfirmId,
    call: ToolCall,
    decision: Option<Decision>,
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        self.member.fleet.approvals.withdraw(&self.id);
        let call = self.call.clone();
        let result = match self.decision.take() {
            Some(Decision::Allow) => ConfirmResult::confirmed(call),
            Some(Decision::AllowWith(arguments)) => {
                ConfirmResult::confirmed(ToolCall { arguments: arguments.to_string(), ..call })
            }
            Some(Decision::Deny(reason)) => ConfirmResult::denied(call, reason),
            None => ConfirmResult::withdrawn(call, STOPPED),
        };
        let confirm_id = self.id.clone();
        self.cx.emit(EventKind::UserConfirmResult { confirm_id, confirm_results: vec![result] });
    }
}
