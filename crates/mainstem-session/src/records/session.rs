//! A session of which only the record is here.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, future, stream};
use mainstem_api::{
    AnySession, Begun, Error, EventQuery, Events, Host as _, NewRun, NewToolResult, Problem, RunView,
    SessionView, TaskQuery,
};
use mainstem_event::{AgentEvent, ChildSummary, Decision, FleetState, SendMode};
use mainstem_journal::{Journal, SessionSummary, WHOLE};
use mainstem_message::{AgentKey, ConfirmId, SessionId, StoredData, ToolCallId};
use mainstem_task::TaskRecord;

use super::{Records, not_steerable, reader::Reader};
use crate::{past::Past, refusal::no_session, selection::Selection};

/// A session of a journal, for reading.
pub(super) struct RecordedSession {
    pub(super) records: Records,
    pub(super) id: SessionId,
}

impl RecordedSession {
    fn journal(&self) -> Result<&Arc<dyn Journal>, Problem> {
        self.records.journal.as_ref().ok_or_else(|| self.unknown())
    }

    fn unknown(&self) -> Problem {
        Problem::not_found("session", self.id.as_str())
    }

    async fn summary(&self) -> Result<SessionSummary, Error> {
        let known = self.journal()?.session(&self.id).await.map_err(|error| no_session(&error))?;
        Ok(known.ok_or_else(|| self.unknown())?)
    }

    fn reader(&self, query: &EventQuery) -> Result<Reader, Problem> {
        let selection = Selection::of(query)?;
        Ok(Reader::new(self.journal()?.clone(), self.id.clone(), query, selection))
    }
}

#[async_trait]
impl AnySession for RecordedSession {
    fn id(&self) -> &SessionId {
        &self.id
    }

    async fn view(&self) -> Result<SessionView, Error> {
        Ok(self.records.view(&**self.journal()?, &self.summary().await?).await)
    }

    async fn runs(&self) -> Result<Vec<RunView>, Error> {
        let last = self.summary().await?.last;
        let past = Past::read(&**self.journal()?, &self.id, last).await;
        let past = past.map_err(|error| no_session(&error))?;
        Ok(past.runs.iter().map(|run| run.view(&self.id)).collect())
    }

    async fn run(&self, _: NewRun) -> Result<Begun, Error> {
        Err(not_steerable())
    }

    fn events(&self, query: EventQuery) -> Events {
        let next = |mut reader: Reader| async { Ok(reader.next().await?.map(|event| (event, reader))) };
        match self.reader(&query) {
            Ok(reader) => stream::try_unfold(reader, next).boxed(),
            Err(problem) => stream::iter([Err(problem.into())]).boxed(),
        }
    }

    async fn fleet(&self) -> Result<FleetState, Error> {
        fold(self.events(EventQuery::stored())).await
    }

    async fn fleet_at(&self, seq: u64) -> Result<FleetState, Error> {
        if seq > self.summary().await?.last {
            return Err(Problem::not_found("event", &seq.to_string()).into());
        }
        let events = self.events(EventQuery::stored());
        fold(events.try_take_while(move |event| future::ready(Ok(event.seq <= seq)))).await
    }

    async fn data(&self, data: &StoredData) -> Result<Bytes, Error> {
        let found =
            self.journal()?.data(&self.id, &data.sha256, WHOLE).await.map_err(|error| no_session(&error))?;
        Ok(found.ok_or_else(|| Problem::not_found("data", data.sha256.as_str()))?)
    }

    async fn children(&self) -> Result<Vec<ChildSummary>, Error> {
        Ok(self.fleet().await?.agents.iter().filter_map(|agent| agent.summary()).collect())
    }

    async fn tasks(&self) -> Result<Vec<TaskRecord>, Error> {
        let query = TaskQuery { session: Some(self.id.clone()), status: None };
        self.records.tasks(&query).await
    }

    async fn send(&self, _: &AgentKey, _: &str, _: SendMode) -> Result<(), Error> {
        Err(not_steerable())
    }

    async fn confirm(&self, _: &ConfirmId, _: Decision) -> Result<(), Error> {
        Err(not_steerable())
    }

    async fn submit(&self, _: &ToolCallId, _: &NewToolResult) -> Result<(), Error> {
        Err(not_steerable())
    }

    async fn cancel_agent(&self, _: &AgentKey) -> Result<bool, Error> {
        Err(not_steerable())
    }
}

/// Returns the state of the fleet after these events.
async fn fold(events: impl Stream<Item = Result<AgentEvent, Error>>) -> Result<FleetState, Error> {
    let fold = |mut fleet: FleetState, event| async move {
        fleet.apply(&event);
        Ok(fleet)
    };
    events.try_fold(FleetState::default(), fold).await
}
