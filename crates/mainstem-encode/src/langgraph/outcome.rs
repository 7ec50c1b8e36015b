//! The end of a run as JSON, for requests that wait for it.

use bytes::Bytes;
use mainstem_event::{AgentEvent, EventKind};
use serde_json::{Value, json};

use super::{LangGraphThread, failure, interrupt};
use crate::Encoder;

/// One JSON value: the state of the thread at the end of a run, `__interrupt__` if the run asks, or
/// `__error__`. Blank lines before it keep the connection open.
#[derive(Debug)]
pub struct LangGraphOutcome {
    state: LangGraphThread,
    interrupts: Vec<Value>,
    failure: Option<Value>,
}

impl LangGraphOutcome {
    /// Creates the encoder of a run's events, from the first on, with the state before them.
    pub fn new(history: LangGraphThread) -> Self {
        Self { state: history, interrupts: Vec::new(), failure: None }
    }
}

impl Encoder for LangGraphOutcome {
    fn media_type(&self) -> &'static str {
        "application/json"
    }

    fn event(&mut self, event: &AgentEvent) -> Bytes {
        self.state.apply(event);
        match &event.kind {
            EventKind::RequireUserConfirm { confirm_id, tool_calls, .. } => {
                self.interrupts.push(interrupt(confirm_id, tool_calls));
            }
            EventKind::UserConfirmResult { confirm_id, .. } => {
                self.interrupts.retain(|interrupt| interrupt["id"] != confirm_id.as_str());
            }
            kind if event.source().is_none() => {
                self.failure = self.failure.take().or_else(|| failure(kind));
            }
            _ => {}
        }
        Bytes::new()
    }

    fn keep_alive(&mut self) -> Bytes {
        Bytes::from_static(b"\n")
    }

    fn fail(&mut self, problem: &str) -> Bytes {
        let problem: Value = serde_json::from_str(problem).unwrap_or_default();
        let error = json!({ "error": problem["code"], "message": problem["detail"] });
        json!({ "__error__": error }).to_string().into()
    }

    fn end(&mut self) -> Bytes {
        let value = match &self.failure {
            Some(failure) => json!({ "__error__": failure }),
            None if !self.interrupts.is_empty() => json!({ "__interrupt__": self.interrupts }),
            None => self.state.values(),
        };
        value.to_string().into()
    }
}
