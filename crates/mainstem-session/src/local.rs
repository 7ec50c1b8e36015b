//! A session of this process behind the interface that remote ones have, too.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use mainstem_api::{
    AnyRun, AnySession, Begun, Code, Error, EventQuery, Events, NewRun, NewToolResult, Problem, RunView,
    SessionView,
};
use mainstem_event::{AgentEvent, CancelReason, ChildSummary, Cursor, Decision, FleetState, SendMode};
use mainstem_message::{AgentKey, ConfirmId, RunId, SessionId, StoredData, ToolCallId};
use mainstem_react::OutputSchema;
use mainstem_task::TaskRecord;
use mainstem_tool::ToolOutput;

use crate::{
    FoundRun, Run, RunHandle, RunOptions, RunRequest, Session,
    refusal::{no_answer, no_leader, no_message, no_tasks},
    selection::Selection,
    view,
};

#[async_trait]
impl AnySession for Session {
    fn id(&self) -> &SessionId {
        self.id()
    }

    async fn view(&self) -> Result<SessionView, Error> {
        Ok(view::open(self))
    }

    async fn runs(&self) -> Result<Vec<RunView>, Error> {
        Ok(self.find_runs().iter().map(FoundRun::view).collect())
    }

    async fn run(&self, run: NewRun) -> Result<Begun, Error> {
        Ok(begun(begin(self, run).await?))
    }

    fn events(&self, query: EventQuery) -> Events {
        match Selection::of(&query) {
            Ok(selection) => {
                let cursor = self.log().committed_from(query.after.unwrap_or(0) + 1);
                let reader = Reader { cursor, selection, is_following: query.is_following(), is_over: false };
                let next = |mut reader: Reader| async { Some((Ok(reader.next().await?), reader)) };
                stream::unfold(reader, next).boxed()
            }
            Err(problem) => stream::iter([Err(problem.into())]).boxed(),
        }
    }

    async fn fleet(&self) -> Result<FleetState, Error> {
        let (fleet, log) = (self.fleet(), self.log());
        // A reader that goes on after it must find the same events after a crash.
        if fleet.seq > 0 {
            log.committed_from(fleet.seq).at_hand().await;
        }
        match log.failure() {
            Some(why) => Err(Problem::new(Code::JournalUnavailable, why.to_string()).into()),
            None => Ok(fleet),
        }
    }

    async fn fleet_at(&self, seq: u64) -> Result<FleetState, Error> {
        match (self.fleet_at(seq).await, self.log().failure()) {
            (Some(fleet), _) => Ok(fleet),
            (None, Some(why)) => Err(Problem::new(Code::JournalUnavailable, why.to_string()).into()),
            (None, None) => Err(Problem::not_found("event", &seq.to_string()).into()),
        }
    }

    async fn data(&self, data: &StoredData) -> Result<Bytes, Error> {
        let unknown = || Problem::not_found("data", data.sha256.as_str());
        let store = self.data_store().ok_or_else(unknown)?;
        let found = store.load(data).await;
        let found = found.map_err(|error| Problem::new(Code::JournalUnavailable, error.to_string()))?;
        Ok(found.ok_or_else(unknown)?)
    }

    async fn children(&self) -> Result<Vec<ChildSummary>, Error> {
        Ok(self.children())
    }

    async fn tasks(&self) -> Result<Vec<TaskRecord>, Error> {
        Ok(self.tasks().await.map_err(|error| no_tasks(&error))?)
    }

    async fn send(&self, child: &AgentKey, message: &str, mode: SendMode) -> Result<(), Error> {
        Ok(self.send(child, message, mode).map_err(|error| no_message(&error))?)
    }

    async fn confirm(&self, id: &ConfirmId, decision: Decision) -> Result<(), Error> {
        Ok(self.confirm(id, decision).map_err(|error| no_answer(&error))?)
    }

    async fn submit(&self, call: &ToolCallId, result: &NewToolResult) -> Result<(), Error> {
        Ok(self.submit_tool_result(call, output(result)).map_err(|error| no_answer(&error))?)
    }

    async fn cancel_agent(&self, child: &AgentKey) -> Result<bool, Error> {
        if !self.children().iter().any(|known| known.agent_key == *child) {
            return Err(Problem::not_found("agent", child.as_str()).into());
        }
        Ok(self.cancel_agent(child))
    }

    fn at_hand(&self, after: u64) -> Vec<AgentEvent> {
        let mut cursor = self.subscribe_from(after + 1);
        std::iter::from_fn(|| cursor.try_next()).collect()
    }

    async fn release(&self, grace: Duration) {
        self.task_set().shutdown(grace).await;
    }
}

#[async_trait]
impl AnyRun for RunHandle {
    fn id(&self) -> &RunId {
        self.id()
    }

    async fn view(&self) -> Result<RunView, Error> {
        Ok(self.view())
    }

    async fn cancel(&self, reason: CancelReason) -> Result<(), Error> {
        self.cancel_with_tasks(reason);
        Ok(())
    }
}

/// The output of a tool that the caller runs.
fn output(result: &NewToolResult) -> ToolOutput {
    if result.is_error { ToolOutput::failed(&*result.content) } else { ToolOutput::from(&*result.content) }
}

fn begun(run: Run) -> Begun {
    Begun { run: Arc::new(run.handle()), events: run.map(Ok).boxed() }
}

async fn begin(session: &Session, run: NewRun) -> Result<Run, Problem> {
    let NewRun { agent, model, input, resume, compact, queue, mut options } = run;
    if agent.is_some() || model.is_some() {
        let checked = session.check_leader(agent.as_deref(), model.as_deref()).await;
        checked.map_err(|why| no_leader(&why))?;
    }
    let schema = options.output_schema.take();
    let mut options = RunOptions::from(options);
    (options.agent, options.model) = (agent.map(Arc::from), model.map(Arc::from));
    if let Some(schema) = schema {
        let schema = OutputSchema::new(schema);
        options =
            options.with_output(schema.map_err(|error| Problem::new(Code::BadBody, error.to_string()))?);
    }
    match (input, resume, compact) {
        (Some(input), false, false) if queue => {
            Ok(session.queue(RunRequest::new(input.0).with_options(options)))
        }
        (Some(input), false, false) => Ok(session.run(RunRequest::new(input.0).with_options(options))?),
        (None, true, false) => Ok(session.resume(options)?),
        (None, false, true) if queue => Ok(session.queue_compaction(options)),
        (None, false, true) => Ok(session.compact(options)?),
        _ => Err(Problem::new(Code::BadBody, NewRun::ONE_OF)),
    }
}

/// A reader of a session's log.
struct Reader {
    cursor: Cursor,
    selection: Selection,
    is_following: bool,
    is_over: bool,
}

impl Reader {
    async fn next(&mut self) -> Option<AgentEvent> {
        while !self.is_over {
            let next = if self.is_following { self.cursor.next().await } else { self.cursor.at_hand().await };
            let event = next?;
            self.is_over = self.selection.ends_with(&event);
            if self.selection.has(&event) {
                return Some(event);
            }
        }
        None
    }
}
