//! The context that a tool gets for its call.

use std::{
    any::{Any, TypeId},
    sync::Arc,
};

use mainstem_event::{EventKind, EventSource, Settle, Timestamp};
use mainstem_message::{RunId, SessionId, ToolCallId};
use mainstem_tool::{MAX_RESULT_BYTES, ToolHost};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::RunContext;

/// The host of a tool's context. It is private, so that only this crate gets from a tool's context
/// to the engine's.
pub(super) struct Call {
    id: ToolCallId,
    cx: RunContext,
}

impl Call {
    pub(super) fn new(cx: &RunContext, id: ToolCallId) -> Self {
        Self { cx: cx.for_call(id.clone()), id }
    }

    pub(super) fn context(&self) -> &RunContext {
        &self.cx
    }
}

impl ToolHost for Call {
    fn call_id(&self) -> &ToolCallId {
        &self.id
    }

    fn agent(&self) -> &str {
        self.cx.agent()
    }

    fn source(&self) -> Option<&EventSource> {
        self.cx.source()
    }

    fn session_id(&self) -> &SessionId {
        self.cx.session_id()
    }

    fn run_id(&self) -> Option<&RunId> {
        self.cx.run_id()
    }

    fn user(&self) -> Option<&str> {
        self.cx.user()
    }

    fn attributes(&self) -> &Map<String, Value> {
        self.cx.attributes()
    }

    fn value(&self, of: TypeId) -> Option<Arc<dyn Any + Send + Sync>> {
        self.cx.extensions.value(of)
    }

    fn now(&self) -> Timestamp {
        self.cx.now()
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.cx.deadline()
    }

    fn cancellation(&self) -> &CancellationToken {
        self.cx.cancellation().token()
    }

    /// Sends up to [`MAX_RESULT_BYTES`] for a call, then a note, then nothing.
    fn progress(&self, text: String) -> Settle<'_> {
        let sent = self.cx.with_transcript(|transcript| transcript.result_bytes(&self.id));
        if let Some(delta) = fitting(sent, text) {
            self.cx.emit(EventKind::ToolResultTextDelta { tool_call_id: self.id.clone(), delta });
        }
        self.cx.sink().settle()
    }
}

/// Returns the part of a text that fits after `sent` bytes of a result, with a note if it is cut.
fn fitting(sent: usize, mut text: String) -> Option<String> {
    let room = MAX_RESULT_BYTES.checked_sub(sent)?;
    if text.len() > room {
        text.truncate(text.floor_char_boundary(room));
        text.push_str(FULL);
    }
    Some(text)
}

const FULL: &str = "\n[this is too long; what comes after it was left out]\n";
