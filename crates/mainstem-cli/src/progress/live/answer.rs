//! What the root writes, below the tree.

use mainstem_event::{AgentEvent, EventKind};
use ratatui::text::Line;

use crate::{fold::folded, markdown, sanitize};

/// The bytes of a long text that are kept: more than a screen shows.
const KEPT: usize = 64 * 1024;

/// The root's latest text. It stays while the root's tools run.
#[derive(Debug, Default)]
pub(super) struct Answer {
    text: String,
    /// Whether the next text replaces it.
    is_over: bool,
}

impl Answer {
    pub(super) fn event(&mut self, event: &AgentEvent) {
        if !event.is_root() {
            return;
        }
        match &event.kind {
            EventKind::ModelCallEnd { .. } => self.is_over = true,
            EventKind::ModelRetry { .. } | EventKind::ModelFallback { .. }
                if event.kind.taken_back().is_some() =>
            {
                *self = Self::default();
            }
            EventKind::TextBlockStart { .. } if std::mem::take(&mut self.is_over) => self.text.clear(),
            EventKind::TextBlockStart { .. } if !self.text.is_empty() => self.text.push_str("\n\n"),
            EventKind::TextBlockDelta { delta, .. } => self.push(delta),
            _ => {}
        }
    }

    /// Adds a text; of a long one, the end is kept.
    fn push(&mut self, delta: &str) {
        self.text.push_str(delta);
        if self.text.len() > 2 * KEPT {
            let from = self.text.floor_char_boundary(self.text.len() - KEPT);
            self.text.drain(..from);
        }
    }

    /// Returns `true` while the root writes it.
    pub(super) fn is_open(&self) -> bool {
        !self.is_over && !self.text.is_empty()
    }

    /// Returns up to `most` of its last lines.
    pub(super) fn last_lines(&self, width: usize, most: usize, is_markdown: bool) -> Vec<Line<'static>> {
        if is_markdown {
            return markdown::last_lines(&self.text, width, most);
        }
        let text = sanitize::clean(&self.text);
        let mut lines: Vec<_> = text.trim_end().lines().rev().take(most).collect();
        lines.reverse();
        let mut lines: Vec<_> =
            lines.into_iter().flat_map(|line| folded(line, width)).map(Line::from).collect();
        lines.drain(..lines.len().saturating_sub(most));
        lines
    }
}
