//! What another process has recorded of a turn, so that it is not shown twice. Pure.
//!
//! The protocol has no ids for the pieces of an artifact, so the recorded texts are looked up at
//! the beginnings of artifacts. Each is found once.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use mainstem_a2a::sdk::{Artifact, Part, PartContent};
use mainstem_event::fold::RecordedInvocation;
use mainstem_message::{ContentBlock, DataSource, Role, ToolCall};

use super::{artifacts::Artifacts, text_of};

/// The complete answers of a turn.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    texts: Vec<String>,
    thoughts: Vec<String>,
    /// Files, as base64.
    files: Vec<String>,
    /// The calls that wait for their results.
    open: Vec<ToolCall>,
}

impl Recorded {
    pub(super) fn of(own: &RecordedInvocation) -> Self {
        let mut recorded =
            Self { open: own.open_calls().map(|(call, _)| call.clone()).collect(), ..Self::default() };
        let messages = own.transcript.messages().iter().filter(|message| message.role == Role::Assistant);
        for block in messages.flat_map(|message| &message.content) {
            match block {
                ContentBlock::Text { text, .. } => recorded.texts.push(text.clone()),
                ContentBlock::Thinking { thinking, .. } => recorded.thoughts.push(thinking.clone()),
                ContentBlock::Data { source: DataSource::Base64(file), .. } => {
                    recorded.files.push(file.clone())
                }
                _ => {}
            }
        }
        recorded
    }

    pub(super) fn has_text(&self) -> bool {
        !self.texts.is_empty()
    }

    pub(super) fn has_file(&self) -> bool {
        !self.files.is_empty()
    }

    /// Returns `true` if a message about the work is recorded, once for each record of it.
    pub(super) fn has_thought(&mut self, text: &str) -> bool {
        take(&mut self.thoughts, |thought| thought == text).is_some()
    }

    /// Returns what is recorded of an artifact that appears for the first time.
    pub(super) fn shown_of(&mut self, artifact: &Artifact, known: &Artifacts) -> Vec<Part> {
        if self.texts.is_empty() && self.files.is_empty() || known.has(&artifact.artifact_id) {
            return Vec::new();
        }
        let text: String = artifact.parts.iter().map(text_of).collect();
        let mut rest = &*text;
        while let Some(recorded) = take(&mut self.texts, |one| !one.is_empty() && rest.starts_with(one)) {
            rest = &rest[recorded.len()..];
        }
        let mut left = text.len() - rest.len();
        let mut shown = Vec::new();
        for part in &artifact.parts {
            match &part.content {
                PartContent::Raw(bytes) => {
                    let file = BASE64_STANDARD.encode(bytes);
                    shown.extend(take(&mut self.files, |one| *one == file).map(|_| part.clone()));
                }
                PartContent::Text(text) => {
                    let begun = text.get(..left.min(text.len())).unwrap_or_default();
                    left -= begun.len();
                    shown.extend((!begun.is_empty()).then(|| Part::text(begun)));
                }
                _ => {
                    let is_shown = text_of(part).len() <= left;
                    left = left.saturating_sub(text_of(part).len());
                    shown.extend(is_shown.then(|| part.clone()));
                }
            }
        }
        shown
    }

    /// Gives a call the id of the open one that it repeats.
    pub(super) fn reuse(&mut self, call: &mut ToolCall) {
        let is_same = |open: &ToolCall| open.name == call.name && open.arguments == call.arguments;
        if let Some(open) = take(&mut self.open, is_same) {
            call.id = open.id;
        }
    }
}

/// Takes out the first value that is meant.
fn take<T>(all: &mut Vec<T>, is_meant: impl Fn(&T) -> bool) -> Option<T> {
    let place = all.iter().position(is_meant)?;
    Some(all.remove(place))
}
