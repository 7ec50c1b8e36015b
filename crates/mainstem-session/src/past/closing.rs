//! Ends what an earlier process left open: invocations, and background tasks.

use std::sync::Arc;

use mainstem_event::{AgentEvent, ConfirmResult, EventKind, EventSink, Outcome, SessionLog, TaskStatus};
use mainstem_message::{Failure, ReplyId, StopReason, TaskId};
use mainstem_subagent::RESTARTED;
use mainstem_task::{TaskEnd, TaskRecord, TaskSet};

use super::Past;
use crate::RunEnd;

/// Why a request for approval of an earlier process is withdrawn.
const WITHDRAWN: &str = "the process that asked has ended";

impl Past {
    /// Ends the invocations that were cut off, children before their parents: withdraws their
    /// requests for approval, closes their open blocks and emits one `AGENT_END` with the reason.
    /// Their messages stay in the history; an invocation that had answered ends with the outcome of
    /// its answer.
    pub(crate) fn close(&mut self, log: &Arc<SessionLog>) {
        while let Some(reply) = self.latest() {
            let Some(mut cut) = self.open.remove(&reply) else { break };
            let sink = EventSink::resumed(log.clone(), cut.origin.clone());
            for (confirm_id, calls) in std::mem::take(&mut cut.requests) {
                let confirm_results = calls.into_iter().map(|call| ConfirmResult::withdrawn(call, WITHDRAWN));
                let confirm_results = confirm_results.collect();
                self.emit(&sink, EventKind::UserConfirmResult { confirm_id, confirm_results });
            }
            while let Some(mut kind) = cut.transcript.next_closing(StopReason::Cancelled) {
                self.children.amend(cut.session(), &mut kind);
                cut.transcript.apply(&kind);
                self.emit(&sink, kind);
            }
            let (outcome, error) = match cut.answered {
                Some(outcome) => (outcome, None),
                None if cut.origin.source.is_none() => {
                    (Outcome::Error, Some(restarted_again(self.lost_in_a_row())))
                }
                None => (Outcome::Error, Some(restarted())),
            };
            let (usage, now) = (cut.usage, log.clock().now());
            let duration_ms = now.millis_since(cut.began);
            self.emit(&sink, EventKind::agent_end(outcome, usage, duration_ms).with_error(error.clone()));
            if cut.origin.source.is_none() {
                self.used.ran(duration_ms);
                self.latest.ran(duration_ms);
            }
            self.end(cut, outcome, error.as_ref(), &usage);
        }
    }

    /// Returns how many of the latest runs that are over have ended with their processes.
    fn lost_in_a_row(&self) -> usize {
        let ends = self.runs.iter().rev().filter(|run| !run.never_began).filter_map(|run| run.end.as_ref());
        let is_lost = |end: &&RunEnd| end.error.as_ref().is_some_and(|error| error.code == RESTARTED);
        ends.take_while(is_lost).count()
    }

    /// Emits an event that closes an invocation, from which its parent learns what it came to.
    fn emit(&mut self, sink: &EventSink, kind: EventKind) {
        let (seq, at) = sink.emit_timed(kind.clone());
        self.children.apply(&AgentEvent::new(seq, at, sink.origin().clone(), kind));
    }

    /// Returns the open invocation that began last: it has no children.
    fn latest(&self) -> Option<ReplyId> {
        self.open.iter().max_by_key(|(_, open)| open.seq).map(|(reply, _)| reply.clone())
    }

    /// Emits the ends of tasks that the log lacks, as their records have them. A task without a
    /// record ends as [`task_end`](Self::task_end) decides; a task that a living executor runs
    /// stays open until its end is read, as does one that this process continues. Invocations are
    /// ended before.
    pub(crate) fn close_tasks(
        &self,
        log: &Arc<SessionLog>,
        tasks: &TaskSet,
        records: &[TaskRecord],
        is_continued: impl Fn(&TaskId) -> bool,
    ) {
        let update = |id: &TaskId, from, to, error| {
            log.emit(EventKind::task_updated(id.clone(), from, to).with_error(error));
        };
        for (id, from) in self.open_tasks().filter(|(id, _)| !is_continued(id)) {
            match records.iter().find(|record| record.id == *id) {
                Some(record) if record.is_over() => update(id, *from, record.status, record.error.clone()),
                Some(_) => tasks.follow(id, *from, log),
                None => {
                    let (to, error) = status_of(self.task_end(id));
                    update(id, *from, to, error);
                }
            }
        }
        for record in records.iter().filter(|record| self.has_lost(record)) {
            update(&record.id, TaskStatus::Pending, TaskStatus::Running, None);
            update(&record.id, TaskStatus::Running, record.status, record.error.clone());
        }
    }

    /// Leaves the tasks open whose records can't be read: they end in the log as soon as their ends
    /// are read.
    pub(crate) fn follow_tasks(
        &self,
        log: &Arc<SessionLog>,
        tasks: &TaskSet,
        is_continued: impl Fn(&TaskId) -> bool,
    ) {
        let open = self.open_tasks().filter(|(id, _)| !is_continued(id));
        open.for_each(|(id, from)| tasks.follow(id, *from, log));
    }

    fn open_tasks(&self) -> impl Iterator<Item = (&TaskId, &TaskStatus)> {
        self.fleet.tasks.iter().filter(|(_, status)| !status.is_terminal())
    }

    /// Returns `true` if a task is over and the log has lost all of its events. Events of a task
    /// that is older than the log's first run were not lost: retention has dropped them, or they
    /// are in another journal. A log without a run has lost a task of which the session has yet to
    /// be told.
    fn has_lost(&self, record: &TaskRecord) -> bool {
        let is_named = self.fleet.tasks.contains_key(&record.id);
        let is_of_log = match self.runs.first() {
            Some(run) => record.created_at >= run.began_at,
            None => record.is_undelivered(),
        };
        record.is_over() && !is_named && is_of_log
    }

    /// Returns how a task ended whose executor has ended: as in the log, else with the outcome of
    /// its child.
    pub(crate) fn task_end(&self, task: &TaskId) -> TaskEnd {
        let done = self.done.get(task).filter(|done| !done.was_dropped());
        let logged = self.fleet.tasks.get(task).copied().filter(|status| status.is_terminal());
        let of_child = || match done.map(|done| done.outcome) {
            Some(Outcome::Success | Outcome::MaxIterations) => TaskStatus::Completed,
            Some(Outcome::Cancelled) => TaskStatus::Cancelled,
            _ => TaskStatus::Failed,
        };
        match logged.unwrap_or_else(of_child) {
            TaskStatus::Completed => {
                TaskEnd::Completed(done.and_then(|done| done.answer.clone()).unwrap_or_default())
            }
            TaskStatus::Cancelled => TaskEnd::Cancelled { by: "an earlier process".into() },
            _ => {
                let error = self.failures.get(task).or_else(|| done?.error.as_ref());
                TaskEnd::from(error.cloned().unwrap_or_else(restarted))
            }
        }
    }
}

/// Returns the status of a task that has ended so, and its error.
fn status_of(end: TaskEnd) -> (TaskStatus, Option<Failure>) {
    match end {
        TaskEnd::Completed(_) => (TaskStatus::Completed, None),
        TaskEnd::Failed { error, .. } => (TaskStatus::Failed, Some(error)),
        TaskEnd::Cancelled { .. } => (TaskStatus::Cancelled, None),
    }
}

/// Returns why an invocation of an earlier process ended.
fn restarted() -> Failure {
    Failure::new(RESTARTED, "the process that ran the agent has ended")
}

/// Returns the same for a run that follows this number of runs that have ended so.
fn restarted_again(before: usize) -> Failure {
    let failure = restarted();
    let others = match before {
        0 => return failure,
        1 => "as that of the run before".to_owned(),
        _ => format!("as those of the {before} runs before"),
    };
    Failure::new(RESTARTED, format!("{}, {others}", failure.message))
}

#[cfg(test)]
mod tests {
    use mainstem_event::{Origin, Rollup};
    use mainstem_message::{Role, ToolCall, Usage};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_gets_the_error_that_the_log_has_also_after_a_checkpoint() {
        let (log, task) = (SessionLog::new("s".parse().unwrap()), TaskId::from_lossy("task-1"));
        let mut reader = log.subscribe_from(1);
        let error = Some(Failure::new("task_store", "the disk is full"));
        let (from, to) = (TaskStatus::Running, TaskStatus::Failed);
        log.emit(EventKind::task_updated(task.clone(), from, to).with_error(error.clone()));
        let mut past = Past::default();
        while let Some(event) = reader.try_next() {
            past.apply(&event);
        }
        let checkpoint = serde_json::to_string(&past).unwrap();
        let restored: Past = serde_json::from_str(&checkpoint).unwrap();
        for past in [past, restored] {
            assert_eq!(past.task_end(&task), TaskEnd::from(error.clone().unwrap()));
        }
    }

    #[test]
    fn a_run_that_is_lost_says_how_many_before_it_were() {
        let log = SessionLog::new("s".parse().unwrap());
        let (mut reader, mut past, mut said) = (log.subscribe_from(1), Past::default(), Vec::new());
        for name in ["zero", "one", "two"] {
            sink(&log, "", name).emit(EventKind::agent_start("x", Role::Assistant, Vec::new()));
            while let Some(event) = reader.try_next() {
                past.apply(&event);
            }
            past.close(&log);
            while let Some(event) = reader.try_next() {
                let EventKind::AgentEnd { error: Some(error), .. } = &event.kind else { continue };
                said.push(error.message.clone());
            }
        }
        let lost = "the process that ran the agent has ended";
        let before = ["", ", as that of the run before", ", as those of the 2 runs before"];
        assert_eq!(said, before.map(|before| format!("{lost}{before}")));
    }

    #[test]
    fn a_request_for_approval_is_withdrawn() {
        let log = SessionLog::new("s".parse().unwrap());
        let (mut reader, root) = (log.subscribe_from(1), sink(&log, "", "zero"));
        root.emit(EventKind::agent_start("x", Role::Assistant, Vec::new()));
        for id in ["answered", "open"] {
            let call = ToolCall::new(id, "write", "{}");
            root.emit(EventKind::require_user_confirm(id.parse().unwrap(), vec![call]));
        }
        let confirm_results = Vec::new();
        root.emit(EventKind::UserConfirmResult { confirm_id: "answered".parse().unwrap(), confirm_results });
        let mut past = Past::default();
        while let Some(event) = reader.try_next() {
            past.apply(&event);
        }
        let mut fleet = past.fleet.clone();
        assert_eq!(fleet.confirmations.len(), 1);
        past.close(&log);
        let closed: Vec<_> = std::iter::from_fn(|| reader.try_next()).collect();
        closed.iter().for_each(|event| fleet.apply(event));
        assert!(fleet.confirmations.is_empty(), "{closed:?}");
        let EventKind::UserConfirmResult { confirm_results, .. } = &closed[0].kind else {
            panic!("{}", closed[0])
        };
        assert_eq!(confirm_results[0].reason.as_deref(), Some(WITHDRAWN));
        assert!(confirm_results[0].withdrawn);
        assert!(closed.last().unwrap().is_run_end());
    }

    /// Returns the sink of an agent's turn that a call has begun; the empty path is the root.
    fn sink(log: &Arc<SessionLog>, path: &str, call: &str) -> EventSink {
        let depth = path.split('/').filter(|segment| !segment.is_empty()).count();
        let session = |path: &str| {
            if path.is_empty() { "s".to_owned() } else { format!("sub-{}", path.replace('/', "-")) }
        };
        let source = json!({
            "agentKey": format!("agent:{}", path.replace('/', "-")), "agentId": path.rsplit('/').next(),
            "sessionId": session(path), "parentSessionId": session(path.rsplit_once('/').map_or("", |(above, _)| above)),
            "depth": depth, "path": format!("s/{path}"), "turn": 1, "parentToolCallId": call, "streamId": 1,
        });
        let mut origin = Origin::session("s".parse().unwrap(), Some("run-1".parse().unwrap()));
        origin.reply_id = Some(format!("reply-{call}").parse().unwrap());
        origin.source = (depth > 0).then(|| Arc::new(serde_json::from_value(source).unwrap()));
        EventSink::resumed(log.clone(), Arc::new(origin))
    }

    #[test]
    fn usage_is_that_of_the_caller_of_an_agent() {
        let log = SessionLog::new("s".parse().unwrap());
        let mut reader = log.subscribe_from(1);
        let start = |sink: &EventSink| sink.emit(EventKind::agent_start("x", Role::Assistant, Vec::new()));
        let call = |sink: &EventSink, id: &str| {
            sink.emit(EventKind::model_call_start("m", 1));
            sink.emit(EventKind::ToolCallStart { tool_call_id: id.into(), tool_call_name: "t".into() });
            let (opaque, discarded) = Default::default();
            sink.emit(EventKind::ToolCallEnd {
                tool_call_id: id.into(),
                tool_call_name: "t".into(),
                opaque,
                discarded,
            });
            sink.emit(EventKind::model_call_end(StopReason::ToolCalls, 0));
        };
        let end = |sink: &EventSink, tokens: u64| {
            let mut usage = Rollup::default();
            usage.add_own(Usage::new(tokens, 0), None);
            sink.emit(EventKind::agent_end(Outcome::Error, usage, 0));
        };
        // The root calls `a`, which calls `a/b`; then the root sends `a/b` a message.
        let (root, a) = (sink(&log, "", "zero"), sink(&log, "a", "one"));
        start(&root);
        call(&root, "one");
        start(&a);
        call(&a, "two");
        for (turn, tokens) in [("two", 1), ("three", 10)] {
            if turn == "three" {
                call(&root, turn);
            }
            let b = sink(&log, "a/b", turn);
            start(&b);
            end(&b, tokens);
        }
        let mut past = Past::default();
        while let Some(event) = reader.try_next() {
            past.apply(&event);
        }
        past.close(&log);
        let closed = std::iter::from_fn(|| reader.try_next());
        let used = closed.filter_map(|event| match &event.kind {
            EventKind::AgentEnd { usage, .. } => Some(usage.inclusive.input_tokens),
            _ => None,
        });
        assert_eq!(used.collect::<Vec<_>>(), [1, 11]);
    }
}
