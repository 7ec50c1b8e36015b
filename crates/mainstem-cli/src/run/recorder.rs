//! The state of all events, without filters: the record, the fleet, the children that failed.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, LineWriter, Write},
};

use mainstem::{
    event::fold::Transcript,
    message::{AgentKey, StopReason},
};
use mainstem_event::{AgentEvent, Diagnostics, EventKind, FleetState, Outcome};

use super::cut::Answers;
use crate::args;

/// Texts by agent.
pub(crate) type Texts = HashMap<Option<AgentKey>, String>;

/// Applies every event of the run, once.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    record: Option<LineWriter<File>>,
    trouble: Option<io::Error>,
    pub(super) fleet: FleetState,
    /// The ids of children that failed.
    pub(super) failed: Vec<String>,
    /// The latest reply of each agent.
    pub(super) replies: Texts,
    /// Why the last answer of the root ended.
    pub(super) stop: Option<StopReason>,
    root_answers: Answers,
    /// The latest turn of each agent that has no reply yet, for `--output json`.
    unreplied: Option<HashMap<Option<AgentKey>, Transcript>>,
    /// The figures of `--diagnostics`, if requested.
    pub(super) diagnostics: Option<Diagnostics>,
}

impl Recorder {
    pub(super) fn new(record: Option<File>, args: &args::Run) -> Self {
        Self {
            record: record.map(LineWriter::new),
            diagnostics: args.diagnostics.then(Diagnostics::default),
            unreplied: (args.output == args::Format::Json).then(HashMap::new),
            ..Self::default()
        }
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
        if event.is_root()
            && let Some(reason) = self.root_answers.event(&event.kind)
        {
            self.stop = Some(reason.clone());
        }
        self.update_unreplied(event);
        if let Some(record) = &mut self.record
            && let Err(error) = writeln!(record, "{}", event.to_json())
        {
            (self.record, self.trouble) = (None, Some(error));
        }
    }

    /// Puts what was said before a cut in front of the root's reply, if that goes on behind it.
    pub(super) fn put_before(&mut self, cut: &str) {
        let root = self.replies.get_mut(&None).filter(|_| self.root_answers.count == 1);
        root.into_iter().for_each(|reply| reply.insert_str(0, cut));
    }

    fn update_unreplied(&mut self, event: &AgentEvent) {
        let Some(turns) = &mut self.unreplied else { return };
        let agent = event.agent_key().cloned();
        match (&event.kind, event.reply_id()) {
            (EventKind::AgentStart { .. }, Some(reply)) => {
                turns.insert(agent, Transcript::new(reply.clone()));
            }
            (EventKind::AgentResult { .. }, _) => {
                turns.remove(&agent);
            }
            (kind, _) => turns.get_mut(&agent).into_iter().for_each(|turn| turn.apply(kind)),
        }
    }

    /// Returns the last answer, or its part, of each agent whose latest turn has no reply.
    pub(super) fn partial_replies(&self) -> Texts {
        let turns = self.unreplied.iter().flatten();
        let text = |turn: &Transcript| turn.last_answer().map(|answer| answer.text());
        let partial = turns.filter_map(|(agent, turn)| Some((agent.clone(), text(turn)?)));
        partial.filter(|(_, text)| !text.is_empty()).collect()
    }

    /// Returns why the record can't be written, once.
    pub(super) fn take_trouble(&mut self) -> Option<io::Error> {
        self.trouble.take()
    }
}
