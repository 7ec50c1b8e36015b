//! What is watched, and what keys do. Pure: the time is a parameter, and steering is returned.

use std::{collections::VecDeque, time::Duration};

use anyhow::ensure;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use mainstem::{
    message::{AgentKey, ConfirmId},
    prelude::Decision,
};
use mainstem_event::{AgentEvent, EventKind, fold::ROOT};

use super::{film::Film, transcript::Transcript};
use crate::{
    approval::Question,
    progress::{
        glyphs::Glyphs,
        live::tree::{Entry, Row},
    },
};

/// The speeds, as multiples of the recorded time.
const SPEEDS: [f64; 8] = [0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0, 200.0];

/// The longest pause of a film, in microseconds of the record.
const LONGEST: f64 = 3e6;

/// Everything that is shown.
pub(super) struct State {
    pub(super) film: Film,
    pub(super) title: String,
    pub(super) glyphs: Glyphs,
    /// Whether the position follows new events.
    pub(super) is_live: bool,
    /// Whether no further event arrives.
    is_over: bool,
    pub(super) is_playing: bool,
    speed: usize,
    /// The recorded time of the present moment, in microseconds.
    clock: f64,
    /// The selected agent; `None` is the root.
    pub(super) selected: Option<AgentKey>,
    /// Lines of the transcript below the screen.
    pub(super) scroll: usize,
    /// Only agents whose row has this text.
    pub(super) filter: String,
    pub(super) prompt: Option<Prompt>,
    /// What happened last, for the person.
    pub(super) note: String,
    /// Why no event arrives at present, if that is known.
    pub(super) stall: Option<String>,
    /// The first row of the list of keys, while that is shown.
    pub(super) help: Option<usize>,
    /// Whether the whole question is shown.
    pub(super) is_expanded: bool,
    /// Whether the bell is to be rung.
    pub(super) rings: bool,
    /// On a narrow screen, whether the transcript is shown rather than the tree.
    pub(super) is_transcript: bool,
    /// Open questions of live events.
    pub(super) questions: VecDeque<(ConfirmId, Question)>,
    /// Why nothing can be steered, if so.
    fixed: Option<&'static str>,
    transcript: Option<(Option<AgentKey>, usize, Transcript)>,
    /// The agent whose end is announced.
    awaited: Option<AgentKey>,
}

/// A line that is typed.
#[derive(Debug, PartialEq)]
pub(super) struct Prompt {
    pub(super) what: Typing,
    pub(super) text: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Typing {
    Filter,
    /// A message to this agent.
    Message(AgentKey),
    /// Why a call is denied.
    Reason(ConfirmId),
    /// Whether to allow a call: Enter.
    Allow(ConfirmId),
    /// Whether to stop this agent: Enter.
    Cancel(AgentKey),
}

/// What a key asks for.
#[derive(Debug, PartialEq)]
pub(super) enum Action {
    Quit,
    Suspend,
    Send(AgentKey, String),
    Cancel(AgentKey),
    Confirm(ConfirmId, Decision),
}

impl State {
    pub(super) fn new(title: &str, glyphs: Glyphs, fixed: Option<&'static str>) -> Self {
        Self {
            film: Film::new(glyphs),
            title: glyphs.line(title),
            glyphs,
            is_live: true,
            is_over: false,
            is_playing: false,
            speed: 2,
            clock: 0.0,
            selected: None,
            scroll: 0,
            filter: String::new(),
            prompt: None,
            note: String::new(),
            stall: None,
            help: None,
            is_expanded: false,
            rings: false,
            is_transcript: false,
            questions: VecDeque::new(),
            fixed,
            transcript: None,
            awaited: None,
        }
    }

    /// Adds a live or recorded event.
    pub(super) fn event(&mut self, event: AgentEvent) {
        match &event.kind {
            EventKind::RequireUserConfirm { confirm_id, tool_calls, rule, .. } => {
                let question = Question::new(confirm_id.clone(), event.agent_label(), tool_calls.clone());
                let question = question.with_rule(rule.as_deref()).with_ascii(self.glyphs.is_ascii());
                self.questions.push_back((confirm_id.clone(), question));
            }
            EventKind::UserConfirmResult { confirm_id, .. } => {
                self.questions.retain(|(id, _)| id != confirm_id);
            }
            EventKind::AgentEnd { outcome, .. }
                if self.awaited.is_some() && event.agent_key() == self.awaited.as_ref() =>
            {
                let name = event.source().and_then(|source| source.title.as_deref()).unwrap_or_default();
                self.note = format!("{} {name} has ended: {}", event.agent_label(), outcome.as_str());
                (self.awaited, self.rings) = (None, true);
            }
            EventKind::AgentEnd { .. } if event.is_root() => self.questions.clear(),
            _ => {}
        }
        self.film.push(event);
        if self.is_live {
            self.film.seek(self.film.len());
        }
    }

    /// Notes that no further event arrives.
    ///
    /// # Errors
    /// There was none; the error says why, if that is known.
    pub(super) fn end(&mut self, title: &str) -> anyhow::Result<()> {
        (self.is_live, self.is_over) = (false, true);
        let why = if self.note.is_empty() { "it has no events" } else { &self.note };
        ensure!(self.film.len() > 0, "{title}: {why}");
        Ok(())
    }

    /// Lets time pass.
    pub(super) fn pass(&mut self, time: Duration) {
        if !self.is_playing {
            return;
        }
        self.clock += time.as_secs_f64() * 1e6 * self.speed();
        let mut to = self.film.at();
        while let Some(event) = self.film.next() {
            let at = event.at.as_micros() as f64;
            self.clock = self.clock.max(at - LONGEST);
            if at > self.clock {
                break;
            }
            to += 1;
            self.film.seek(to);
        }
        if self.film.next().is_none() {
            self.is_playing = false;
        }
    }

    pub(super) fn speed(&self) -> f64 {
        SPEEDS[self.speed]
    }

    /// Returns the rows of the tree that the filter leaves.
    pub(super) fn rows(&self) -> Vec<Row> {
        let now = self.film.times().map(|(now, _)| now).unwrap_or_default();
        let entries = self.film.tree().entries(now, usize::MAX);
        let filter = self.filter.to_lowercase();
        let rows = entries.into_iter().filter_map(|entry| match entry {
            Entry::Agent(row) => Some(row),
            Entry::Ended { .. } => None,
        });
        let has = |row: &Row| {
            let text = format!("{} {} {}", row.name.id, row.name.about, row.activity);
            filter.is_empty() || text.to_lowercase().contains(&filter)
        };
        rows.filter(has).collect()
    }

    /// Returns the transcript of the selected agent at the position.
    pub(super) fn transcript(&mut self) -> &mut Transcript {
        let at = self.film.at();
        let fits = self.transcript.as_ref().is_some_and(|(key, to, _)| *key == self.selected && *to <= at);
        if !fits {
            self.transcript = None;
        }
        let selected = self.selected.clone();
        let (key, to, transcript) =
            self.transcript.get_or_insert_with(|| (selected, 0, Transcript::default()));
        let new = self.film.shown()[*to..].iter().filter(|event| event.agent_key() == key.as_ref());
        new.for_each(|event| transcript.event(event));
        *to = at;
        transcript
    }

    /// Does what a key asks for; returns what concerns the session or the screen.
    pub(super) fn key(&mut self, key: KeyEvent, page: usize) -> Option<Action> {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c' | 'd') => Some(Action::Quit),
                KeyCode::Char('z') => Some(Action::Suspend),
                _ => None,
            };
        }
        self.note.clear();
        if self.prompt.is_some() {
            return self.typed(key.code);
        }
        if let Some(first) = self.help {
            self.help = match key.code {
                KeyCode::Down | KeyCode::PageDown | KeyCode::Char('j') => Some(first + page.div_ceil(2)),
                KeyCode::Up | KeyCode::PageUp | KeyCode::Char('k') => {
                    Some(first.saturating_sub(page.div_ceil(2)))
                }
                _ => None,
            };
            return None;
        }
        match key.code {
            KeyCode::Char('q') => return Some(Action::Quit),
            KeyCode::Esc if self.filter.is_empty() => return Some(Action::Quit),
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('?' | 'h') => self.help = Some(0),
            KeyCode::Up | KeyCode::Char('k') => self.select(-1),
            KeyCode::Down | KeyCode::Char('j') => self.select(1),
            KeyCode::Home => self.select(isize::MIN),
            KeyCode::End => self.select(isize::MAX),
            KeyCode::Tab | KeyCode::Enter => self.is_transcript = !self.is_transcript,
            KeyCode::PageUp => self.scroll = self.scroll.saturating_add(page),
            KeyCode::PageDown => self.scroll = self.scroll.saturating_sub(page),
            KeyCode::Left => self.step(-0.01),
            KeyCode::Right => self.step(0.01),
            KeyCode::Char('<') => self.step(-0.1),
            KeyCode::Char('>') => self.step(0.1),
            KeyCode::Char(',') => self.go_to(self.film.at().saturating_sub(1)),
            KeyCode::Char('.') => self.go_to(self.film.at() + 1),
            KeyCode::Char('0') => self.go_to(0),
            KeyCode::Char(' ') => self.play(),
            KeyCode::Char('+' | '=') => self.speed = (self.speed + 1).min(SPEEDS.len() - 1),
            KeyCode::Char('-') => self.speed = self.speed.saturating_sub(1),
            KeyCode::Char('l') => {
                (self.is_live, self.is_playing) = (!self.is_over, false);
                self.film.seek(self.film.len());
            }
            KeyCode::Char('v') => self.is_expanded = !self.is_expanded,
            KeyCode::Char('/') => self.prompt(Typing::Filter, self.filter.clone()),
            KeyCode::Char(steering) => return self.steer(steering),
            _ => {}
        }
        None
    }

    /// Does what a key for the session asks for.
    fn steer(&mut self, key: char) -> Option<Action> {
        let question = self.questions.front().map(|(id, _)| id.clone()).filter(|_| self.is_live);
        if let (Some(why), 'm' | 'c' | 'y' | 'n') = (self.fixed, key) {
            self.note = why.to_owned();
            return None;
        }
        match (key, self.selected.clone(), question) {
            ('y', _, Some(id)) => self.prompt(Typing::Allow(id), String::new()),
            ('n', _, Some(id)) => self.prompt(Typing::Reason(id), String::new()),
            ('y' | 'n', _, None) => self.note = "no question is open".to_owned(),
            ('m', key, _) => {
                let key = key.unwrap_or_else(|| AgentKey::from_lossy(ROOT));
                self.prompt(Typing::Message(key), String::new());
            }
            ('c', Some(key), _) => self.prompt(Typing::Cancel(key), String::new()),
            ('c', None, _) => self.note = "select a child of the leading agent".to_owned(),
            ('w', Some(key), _) if self.has_ended(&key) => self.note = "it has ended".to_owned(),
            ('w', Some(key), _) => {
                self.note = "its end will be announced".to_owned();
                self.awaited = Some(key);
            }
            _ => {}
        }
        None
    }

    /// Returns the name of an agent, as the tree has it.
    pub(super) fn name(&self, key: &AgentKey) -> String {
        let tree = self.film.tree();
        let agent = tree.fleet().agents.iter().find(|agent| agent.key() == Some(key));
        agent.map_or_else(|| key.to_string(), |agent| tree.row_of(agent).name.to_string())
    }

    fn has_ended(&self, key: &AgentKey) -> bool {
        let agents = &self.film.tree().fleet().agents;
        agents.iter().any(|agent| agent.key() == Some(key) && agent.outcome.is_some())
    }

    /// Adds pasted text to what is typed; line feeds become blanks.
    pub(super) fn paste(&mut self, text: &str) -> Option<Action> {
        if let Some(prompt) = &mut self.prompt {
            prompt.text.push_str(&text.replace(['\r', '\n'], " "));
            self.filter_as_typed();
        }
        None
    }

    /// Filters by what is typed, and selects an agent that is shown.
    fn filter_as_typed(&mut self) {
        let Some(Prompt { what: Typing::Filter, text }) = &self.prompt else { return };
        text.clone_into(&mut self.filter);
        let rows = self.rows();
        if let Some(first) = rows.first().filter(|_| rows.iter().all(|row| row.key != self.selected)) {
            self.selected.clone_from(&first.key);
        }
    }

    fn prompt(&mut self, what: Typing, text: String) {
        self.prompt = Some(Prompt { what, text });
    }

    fn typed(&mut self, key: KeyCode) -> Option<Action> {
        let prompt = self.prompt.as_mut()?;
        match key {
            KeyCode::Esc => self.prompt = None,
            KeyCode::Backspace => _ = prompt.text.pop(),
            KeyCode::Char(c) => prompt.text.push(c),
            KeyCode::Enter => {
                let Prompt { what, text } = self.prompt.take()?;
                return entered(what, text);
            }
            _ => {}
        }
        self.filter_as_typed();
        None
    }

    fn select(&mut self, by: isize) {
        let rows = self.rows();
        let at = rows.iter().position(|row| row.key == self.selected).unwrap_or(0);
        let to = at.saturating_add_signed(by).min(rows.len().saturating_sub(1));
        if let Some(row) = rows.get(to) {
            self.selected.clone_from(&row.key);
            self.scroll = 0;
        }
    }

    /// Moves by a part of the record, at least by an event.
    fn step(&mut self, part: f64) {
        let by = self.film.part(part.abs()).max(1);
        let at = self.film.at();
        self.go_to(if part < 0.0 { at.saturating_sub(by) } else { at + by });
    }

    fn go_to(&mut self, to: usize) {
        (self.is_live, self.is_playing) = (false, false);
        self.film.seek(to);
    }

    fn play(&mut self) {
        if self.film.next().is_none() && !self.is_live && !self.is_playing {
            self.film.seek(0);
        }
        self.is_playing = !self.is_playing && !self.is_live;
        self.is_live = false;
        self.clock = self.film.times().map_or(0.0, |(now, _)| now.as_micros() as f64);
    }
}

/// Returns what a typed line asks for.
fn entered(what: Typing, text: String) -> Option<Action> {
    match what {
        Typing::Filter => None,
        Typing::Message(_) if text.trim().is_empty() => None,
        Typing::Message(key) => Some(Action::Send(key, text)),
        Typing::Allow(id) => text.trim().is_empty().then_some(Action::Confirm(id, Decision::Allow)),
        Typing::Reason(id) if text.trim().is_empty() => {
            Some(Action::Confirm(id, Decision::Deny("declined by the person".to_owned())))
        }
        Typing::Reason(id) => Some(Action::Confirm(id, Decision::Deny(text))),
        Typing::Cancel(key) => matches!(text.trim(), "" | "y" | "yes").then_some(Action::Cancel(key)),
    }
}
