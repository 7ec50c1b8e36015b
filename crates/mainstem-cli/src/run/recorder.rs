//! The state of all events, without filters: the record, the fleet, the children that failed.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, LineWriter, Write},
};

use mainstem::message::AgentKey;
use mainstem_event::{AgentEvent, Diagnostics, EventKind, FleetState, Outcome};

/// Applies every event of the run, once.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    record: Option<LineWriter<File>>,
    trouble: Option<io::Error>,
    pub(super) fleet: FleetState,
    /// The ids of children that failed.
    pub(super) failed: Vec<String>,
    /// The latest reply of each agent.
    pub(super) replies: HashMap<Option<AgentKey>, String>,
    /// The figures of `--diagnostics`, if requested.
    pub(super) diagnostics: Option<Diagnostics>,
}

impl Recorder {
    pub(super) fn new(record: Option<File>, has_diagnostics: bool) -> Self {
        let diagnostics = has_diagnostics.then(Diagnostics::default);
        Self { record: record.map(LineWriter::new), diagnostics, ..Self::default() }
    }

    /// Applies an event that the run has handed out.
    pub(super) fn handed(&mut self, event: &AgentEvent) {
        if let Some(diagnostics) = &mut self.diagnostics {
            diagnostics.apply(event);
        }
        self.event(event);
    }

    /// Applies an event that was read after the run.
    pub(super) fn unread(&mut self, event: &AgentEvent) {
        if let Some(diagnostics) = &mut self.diagnostics {
            diagnostics.apply_unread(event);
        }
        self.event(event);
    }

    fn event(&mut self, event: &AgentEvent) {
        self.fleet.apply(event);
        if let (Some(source), EventKind::AgentEnd { outcome, .. }) = (event.source(), &event.kind)
            && !matches!(outcome, Outcome::Success | Outcome::MaxIterations)
        {
            self.failed.push(source.agent_id.to_string());
        }
        if let EventKind::AgentResult { result } = &event.kind {
            self.replies.insert(event.agent_key().cloned(), result.text());
        }
        if let Some(record) = &mut self.record
            && let Err(error) = writeln!(record, "{}", event.to_json())
        {
            (self.record, self.trouble) = (None, Some(error));
        }
    }

    /// Returns why the record can't be written, once.
    pub(super) fn take_trouble(&mut self) -> Option<io::Error> {
        self.trouble.take()
    }
}
