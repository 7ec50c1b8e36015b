//! The person at the terminal: open questions, what is typed, and the answers.

mod allowed;
mod always;
mod answer;
mod keys;
mod lines;
mod question;

use std::{
    collections::VecDeque,
    future::pending,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use mainstem::{
    api::{AnySession, Code},
    message::ConfirmId,
    prelude::Decision,
};
use mainstem_event::{AgentEvent, EventKind};

#[cfg(unix)]
pub(crate) use self::keys::stop_at_prompt;
pub(crate) use self::{
    allowed::{Allowed, Approval, Approve},
    keys::{Silence, restore},
    lines::Line,
    question::{Kind, Question, Row, SHOWN},
};
use self::{
    answer::Answer,
    keys::{Keys, Typed},
    lines::Lines,
};
use crate::{
    host::advised,
    progress::{Progress, names::Names},
    sanitize::visible,
    terminal::Terminal,
};

/// The questions of a run, one after another.
#[derive(Debug, Default)]
pub(crate) struct Approvals {
    /// The first is shown.
    waiting: VecDeque<Question>,
    /// Whether the first was put to the person, with a number of its own.
    is_put: bool,
    number: Arc<AtomicU64>,
    /// Questions that need no answer of the person.
    granted: Vec<ConfirmId>,
    allowed: Allowed,
    names: Names,
    is_ascii: bool,
    /// What was typed before the first question.
    draft: String,
    /// While a question is shown in a frame, or the person may type into it.
    keys: Option<Keys>,
    /// Whether keys are read without a question.
    is_listening: bool,
    /// Whether a question was shown since none was open.
    is_asking: bool,
    lines: Option<Lines>,
    /// Whether stdin has ended.
    is_over: bool,
}

/// What the person typed.
#[derive(Debug, PartialEq)]
pub(crate) enum Input {
    /// A line is being typed.
    Draft,
    /// A line; `None` at the end of stdin.
    Line(Option<Line>),
    /// Esc.
    Escape,
    /// Ctrl-D.
    End,
}

/// What was typed, and what it is for.
#[derive(Debug, PartialEq)]
pub(crate) enum Taken {
    /// Answers to questions, if there are any.
    Answers(Vec<Answered>),
    /// A line, while no question was open.
    Line(String),
    /// Esc, while no question was open.
    Escape,
    /// Ctrl-D, while no question was open.
    End,
}

/// A question, and its answer.
pub(crate) type Answered = (ConfirmId, Decision);

impl Approvals {
    /// Creates them; what is allowed is not asked.
    pub(crate) fn new(allowed: Allowed, terminal: Terminal) -> Self {
        Self { allowed, is_ascii: terminal.ascii, ..Self::default() }
    }

    /// Applies an event.
    pub(crate) fn event(&mut self, event: &AgentEvent) {
        self.names.event(event);
        match &event.kind {
            EventKind::RequireUserConfirm { confirm_id, tool_calls, rule, .. } => {
                let agent = self.names.of(event.source()).to_string();
                let question = Question::new(confirm_id.clone(), &agent, tool_calls.clone());
                let question = question.with_rule(rule.as_deref()).with_ascii(self.is_ascii);
                if self.allowed.covers(&question) {
                    self.granted.push(question.id);
                } else {
                    self.waiting.push_back(question);
                }
            }
            EventKind::UserConfirmResult { confirm_id, .. } => {
                self.is_put &= self.waiting.front().is_some_and(|first| first.id != *confirm_id);
                self.waiting.retain(|question| question.id != *confirm_id);
            }
            _ => {}
        }
    }

    /// Shows the first question, or that there is none any longer.
    pub(crate) fn ask(&mut self, progress: &mut dyn Progress) {
        if self.waiting.is_empty() {
            return self.stop_asking(progress);
        }
        let is_new = !std::mem::replace(&mut self.is_put, true);
        if is_new {
            self.begin_asking(progress);
        }
        let behind = self.waiting.len() - 1;
        let (is_drawn, text) = (self.keys.is_some(), self.keys.as_ref().map_or("", Keys::text));
        if let Some(first) = self.waiting.front_mut()
            && (is_new || is_drawn && first.behind != behind)
        {
            first.behind = behind;
            progress.ask(Some(first), text);
        }
    }

    /// Discards what was typed before a question, which does not answer it. A line that was begun
    /// before the first question is put aside.
    fn begin_asking(&mut self, progress: &dyn Progress) {
        discard_typed();
        self.number.fetch_add(1, Ordering::AcqRel);
        if progress.draws_typed() && self.keys.is_none() && !self.is_reading() {
            self.keys = Keys::start();
        }
        let typed = self.keys.as_mut().map(Keys::take).unwrap_or_default();
        if !std::mem::replace(&mut self.is_asking, true) && self.is_listening {
            self.draft = typed;
        }
    }

    /// Shows that no question is open, and the line that was put aside.
    fn stop_asking(&mut self, progress: &mut dyn Progress) {
        self.is_put = false;
        if !std::mem::take(&mut self.is_asking) {
            return;
        }
        self.keys = self.keys.take().filter(|_| self.is_listening);
        let draft = std::mem::take(&mut self.draft);
        progress.ask(None, &draft);
        self.keys.iter_mut().for_each(|keys| keys.begin(draft.clone()));
    }

    /// Reads keys from now on, also while no question is open, if they can be shown. A line may
    /// have begun.
    pub(crate) fn listen(&mut self, progress: &mut dyn Progress, begun: String) {
        let is_free = progress.draws_typed() && !self.is_reading();
        self.keys = if is_free { Keys::start() } else { None };
        self.is_listening = self.keys.is_some();
        if let Some(keys) = &mut self.keys {
            progress.ask(None, &begun);
            keys.begin(begun);
        }
    }

    /// Gives the keyboard to something else, until keys are [listened](Self::listen) to again. An
    /// open question is put again then.
    pub(crate) fn rest(&mut self) {
        self.keys = None;
        (self.is_put, self.is_listening, self.is_asking) = (false, false, false);
    }

    /// Takes the keys that were pressed without Enter, if no question is open.
    pub(crate) fn pressed(&mut self) -> String {
        let keys = self.keys.as_mut().filter(|_| self.waiting.is_empty());
        keys.map(Keys::take).unwrap_or_default()
    }

    /// Takes what was typed. If a line is not an answer to the question, shows how to answer.
    pub(crate) fn input(&mut self, input: Input, progress: &mut dyn Progress) -> Taken {
        match input {
            Input::Line(Some(line)) if self.waiting.is_empty() && !line.text.trim().is_empty() => {
                progress.ask(None, "");
                Taken::Line(line.text)
            }
            Input::Line(line) => {
                let answered = self.answer(line, progress);
                self.ask(progress);
                Taken::Answers(answered)
            }
            Input::Escape if self.waiting.is_empty() => Taken::Escape,
            Input::End if self.waiting.is_empty() => Taken::End,
            Input::End => {
                let below = self.number.load(Ordering::Acquire);
                self.input(Input::Line(Some(Line { text: "n".to_owned(), below })), progress)
            }
            Input::Draft | Input::Escape => {
                progress.ask(self.waiting.front(), self.keys.as_ref().map_or("", Keys::text));
                Taken::Answers(Vec::new())
            }
        }
    }

    /// Returns the answers to the questions that the person need not see.
    pub(crate) fn granted(&mut self) -> Vec<Answered> {
        self.granted.drain(..).map(|id| (id, Decision::Allow)).collect()
    }

    /// Returns `true` if a question is open.
    pub(crate) fn is_open(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns `true` if a frame can be drawn: what is typed is a part of it.
    pub(crate) fn is_drawn(&self) -> bool {
        !self.is_open() || self.keys.is_some()
    }

    /// Returns what is typed next, while a question is open or keys are read anyway.
    pub(crate) async fn next(&mut self) -> Input {
        match &mut self.keys {
            _ if self.waiting.is_empty() && !self.is_listening => pending().await,
            _ if self.is_over && self.waiting.is_empty() => pending().await,
            _ if self.is_over => Input::Line(None),
            Some(keys) => match keys.next().await {
                Typed::Escape => Input::Escape,
                Typed::Draft => Input::Draft,
                Typed::Line(text) => {
                    Input::Line(Some(Line { text, below: self.number.load(Ordering::Acquire) }))
                }
                Typed::End => Input::End,
                Typed::Closed => Input::Line(None),
            },
            None => Input::Line(self.typed().await),
        }
    }

    /// Returns the next line, also while no question is open; `None` at the end of stdin.
    pub(crate) async fn typed(&mut self) -> Option<Line> {
        if self.is_over {
            return None;
        }
        self.lines.get_or_insert_with(|| Lines::start(self.number.clone())).next().await
    }

    /// Returns `true` if the thread still waits for a line although the caller has stopped waiting.
    /// The thread gets the next line that is typed.
    pub(crate) fn is_reading(&self) -> bool {
        self.lines.as_ref().is_some_and(Lines::is_reading)
    }

    /// Reads keys again, and shows everything again, after the process was stopped and continued.
    pub(crate) fn continued(&self, progress: &mut dyn Progress) {
        self.keys.iter().for_each(|keys| _ = keys.apply());
        progress.continued();
    }

    /// Gives the terminal back: no further question is shown. Returns a line that was begun.
    pub(crate) fn close(&mut self, progress: &mut dyn Progress) -> String {
        let is_asking = std::mem::take(&mut self.is_asking);
        let draft = std::mem::take(&mut self.draft);
        let typed = self.keys.take().map(|mut keys| keys.take()).unwrap_or_default();
        self.waiting.clear();
        (self.is_put, self.is_listening) = (false, false);
        progress.ask(None, "");
        if is_asking { draft } else { typed }
    }

    fn answer(&mut self, line: Option<Line>, progress: &mut dyn Progress) -> Vec<Answered> {
        self.is_over |= line.is_none();
        let is_old = |line: &Line| line.below != self.number.load(Ordering::Acquire);
        let Some(question) = self.waiting.front().filter(|_| !line.as_ref().is_some_and(is_old)) else {
            return Vec::new();
        };
        let decision = match answer::answer(line.as_ref().map(|line| &*line.text), question) {
            Ok(Answer::Decide(decision)) => decision,
            Ok(Answer::View) => {
                progress.view(question);
                clear_typed(question, progress);
                return Vec::new();
            }
            Ok(Answer::Always(patterns)) => {
                self.allow(patterns, progress);
                Decision::Allow
            }
            Err(how) => {
                progress.note(&how);
                clear_typed(question, progress);
                return Vec::new();
            }
        };
        let Some(first) = self.waiting.pop_front() else { return Vec::new() };
        self.is_put = false;
        if progress.draws_typed() {
            let (word, edited) = match &decision {
                Decision::Deny(_) => ("denied", None),
                Decision::AllowWith(arguments) => ("allowed instead", Some(arguments)),
                Decision::Allow => ("allowed", None),
            };
            progress.note(&format!("{word} {}", first.summary(edited)));
        }
        let (covered, waiting) = self.waiting.drain(..).partition(|question| self.allowed.covers(question));
        self.waiting = waiting;
        self.granted.extend(covered.into_iter().map(|question: Question| question.id));
        [vec![(first.id, decision)], self.granted()].concat()
    }

    /// Allows patterns from now on.
    fn allow(&mut self, patterns: Vec<mainstem::policy::Pattern>, progress: &mut dyn Progress) {
        let names: Vec<_> = patterns.iter().map(|pattern| visible(&pattern.to_string())).collect();
        match self.allowed.add(patterns) {
            Ok(()) => progress.note(&format!(
                "always allowed here: {}; `mainstem trust list` shows what is",
                names.join(", ")
            )),
            Err(error) => progress.note(&format!("warning: allowed for this command only: {error:#}")),
        }
    }
}

/// Gives answers to a session. If one is not accepted, shows a note.
pub(crate) async fn confirm(session: &dyn AnySession, answered: Vec<Answered>, progress: &mut dyn Progress) {
    for (id, decision) in answered {
        if let Err(error) = session.confirm(&id, decision).await
            // Its result arrives as an event.
            && !error.has_code(&Code::NotAsked)
        {
            let error = advised(error);
            progress.note(&format!("error: the answer was not accepted: {error:#}"));
        }
    }
}

/// Shows a question that stays open, without the line that was typed.
fn clear_typed(question: &Question, progress: &mut dyn Progress) {
    if progress.draws_typed() {
        progress.ask(Some(question), "");
    }
}

/// Discards the terminal's unread input.
pub(crate) fn discard_typed() {
    #[cfg(unix)]
    {
        use rustix::termios::{QueueSelector, tcflush};
        // This has no effect if stdin is not a terminal.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    }
}

#[cfg(test)]
mod tests;
