//! Tool calls whose process ended before they had a result: what their children have reported
//! becomes the result, so that the parent need not ask them again. Pure.

use std::collections::HashMap;

use mainstem_event::{EventKind, EventSource};
use mainstem_message::{SessionId, ToolCallId, ToolState};
use serde_json::Value;

use crate::spawn::report::Report;

/// The tool calls without a result, by the caller's session.
#[derive(Debug, Default)]
pub(crate) struct OpenCalls(HashMap<(SessionId, ToolCallId), OpenCall>);

#[derive(Debug)]
struct OpenCall {
    /// How many children it is about, if it is about any.
    expected: usize,
    /// Of children that have ended.
    reports: Vec<Report>,
}

impl OpenCalls {
    /// A call begins.
    pub(crate) fn open(&mut self, session: &SessionId, call: &ToolCallId, input: &Value) {
        let spawns = input.get("spawns").and_then(Value::as_array);
        let open = OpenCall { expected: spawns.map_or(1, Vec::len), reports: Vec::new() };
        self.0.insert((session.clone(), call.clone()), open);
    }

    /// A call has its result.
    pub(crate) fn close(&mut self, session: &SessionId, call: &ToolCallId) {
        self.0.remove(&(session.clone(), call.clone()));
    }

    /// A child has ended; its call may be open.
    pub(crate) fn report(&mut self, child: &EventSource, report: impl FnOnce() -> Report) {
        let Some(id) = &child.parent_tool_call_id else { return };
        if let Some(call) = self.0.get_mut(&(child.parent_session_id.clone(), id.clone())) {
            call.reports.push(report());
        }
    }

    /// Puts the reports of a call's children into the event that closes the call.
    pub(crate) fn amend(&self, session: &SessionId, closing: &mut EventKind) {
        let (EventKind::ToolResultTextDelta { tool_call_id, .. }
        | EventKind::ToolResultEnd { tool_call_id, .. }) = closing
        else {
            return;
        };
        let call = self.0.get(&(session.clone(), tool_call_id.clone()));
        let Some(call) = call.filter(|call| !call.reports.is_empty()) else { return };
        match closing {
            EventKind::ToolResultTextDelta { delta, .. } => *delta = call.text(),
            EventKind::ToolResultEnd { state, .. } => *state = call.state(),
            _ => {}
        }
    }
}

impl OpenCall {
    fn text(&self) -> String {
        self.reports.iter().map(Report::text).collect::<Vec<_>>().join("\n\n")
    }

    /// Complete only if each child of the call has started and ended by itself.
    fn state(&self) -> ToolState {
        let has = |state| self.reports.iter().any(|report| report.state() == state);
        if has(ToolState::Interrupted) || self.reports.len() < self.expected {
            ToolState::Interrupted
        } else if has(ToolState::Error) {
            ToolState::Error
        } else {
            ToolState::Success
        }
    }
}
