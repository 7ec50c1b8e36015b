//! Tools that return the recorded results.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::future;
use mainstem::react::{Middleware, NextTool, PendingCall, RunContext};
use mainstem_event::EventSource;
use mainstem_message::{ContentBlock, ToolCallId, ToolSpec, ToolState};
use mainstem_tool::{Tool, ToolContext, ToolError, ToolOutput, async_trait};
use serde_json::{Value, json};

use super::{
    schedule::Stage,
    script::{Caller, Found, ROOT, Script},
};

/// The recorded results that are left, each of which is given once.
#[derive(Clone)]
pub(super) struct Results(Arc<Mutex<HashMap<Caller, Vec<Found>>>>);

impl Results {
    pub(super) fn new(script: &Script) -> Self {
        let mut results = script.results.clone();
        results.values_mut().for_each(|results| results.reverse());
        Self(Arc::new(Mutex::new(results)))
    }

    /// Returns the next result of a call.
    fn next(&self, source: Option<&EventSource>, call: &ToolCallId) -> Option<Found> {
        self.with(source, call, |results| results.last().cloned())
    }

    /// Takes the next result of a call.
    fn take(&self, source: Option<&EventSource>, call: &ToolCallId) -> Option<Found> {
        self.with(source, call, Vec::pop)
    }

    fn with(
        &self,
        source: Option<&EventSource>,
        call: &ToolCallId,
        f: impl FnOnce(&mut Vec<Found>) -> Option<Found>,
    ) -> Option<Found> {
        let key = source.map_or(ROOT, |source| source.agent_key.as_str());
        let mut results = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f(results.get_mut(&(key.to_owned(), call.clone()))?)
    }
}

/// A tool that returns the results that a tool of its name returned.
pub(super) struct RecordedTool {
    pub(super) name: Arc<str>,
    pub(super) is_read_only: bool,
    pub(super) results: Results,
    pub(super) stage: Stage,
}

#[async_trait]
impl Tool for RecordedTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(&*self.name, "Returns what it returned in the recording", json!({ "type": "object" }))
    }

    fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    async fn call(&self, cx: &ToolContext, _: Value) -> Result<ToolOutput, ToolError> {
        let found = self.results.take(cx.source(), cx.call_id()).ok_or_else(|| {
            ToolError::new(format!("the recording has no result of {} for {}", self.name, cx.call_id()))
        })?;
        if found.state == ToolState::Interrupted {
            // Until it is stopped, as it was then.
            return future::pending().await;
        }
        self.stage.until(found.at).await;
        for piece in found.progress {
            cx.progress(piece).await;
        }
        Ok(ToolOutput::new(found.content).with_state(found.state))
    }
}

/// The tools that begin children.
const SPAWNING: [&str; 2] = ["agent_spawn", "agent_fanout"];

impl Found {
    /// Returns all of it.
    fn into_output(self) -> ToolOutput {
        let progress = self.progress.into_iter().map(ContentBlock::text);
        ToolOutput::new(progress.chain(self.content).collect()).with_state(self.state)
    }
}

/// Begins each call when it began, so that children start in their order. Returns the results of
/// the calls that were denied without a question: the rules are not in the record.
pub(super) struct Calls {
    pub(super) results: Results,
    pub(super) stage: Stage,
}

#[async_trait]
impl Middleware for Calls {
    async fn on_tool_call(
        &self,
        cx: &RunContext,
        call: PendingCall,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let found = self.results.next(cx.source(), &call.id);
        // A call that a person was asked about begins with the answer.
        let Some(found) = found.filter(|found| !found.was_asked) else { return next.run(cx, call).await };
        self.stage.until(found.began).await;
        // A spawn that failed names all agents, of which the record has those that ran.
        let began_nothing = found.state == ToolState::Error && !found.began_child;
        if found.state == ToolState::Denied || (began_nothing && SPAWNING.contains(&&*call.name)) {
            self.results.take(cx.source(), &call.id);
            return Ok(found.into_output());
        }
        next.run(cx, call).await
    }
}
