//! A turn of a chat, from its begin to its end: what it shows, and what is typed meanwhile.

use anyhow::anyhow;
use futures_util::StreamExt;
use mainstem::{
    api::{Begun, Code},
    message::AgentKey,
};
use mainstem_event::{AgentEvent, CancelReason, Clock, EventKind, Outcome, SendMode, SystemClock, fold};
use tokio::time::timeout;

use super::{Dialog, Shown, command::Command, session::ChatSession};
use crate::{
    approval::{Taken, confirm},
    args::Format,
    exit::{Exit, Fault, OrExit, in_one_line},
    host::{Advise, CANCEL_TIMEOUT, advised},
    print::print_reply,
    progress::{self, Progress},
    replies::Replies,
    signals::Signal,
};

/// What a turn is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Reply,
    Compaction,
}

/// A turn in progress.
struct Turn {
    begun: Begun,
    progress: Box<dyn Progress>,
    replies: Replies,
    /// The messages that a compaction has left.
    compacted: Option<usize>,
    is_stopping: bool,
}

impl Dialog<'_> {
    /// Follows a turn to its end.
    pub(super) async fn turn(
        &mut self,
        session: &ChatSession,
        begun: Begun,
        title: &str,
        purpose: Purpose,
    ) -> Result<(), Fault> {
        let progress = progress::on_stderr(self.terminal, self.args.progress, Format::Text, title);
        let replies = Replies::default();
        let mut turn = Turn { begun, progress, replies, compacted: None, is_stopping: false };
        if self.editor.is_some() {
            self.approvals.listen(&mut *turn.progress, std::mem::take(&mut self.draft));
        }
        let ended = self.follow(session, &mut turn).await;
        self.draft = self.approvals.close(&mut *turn.progress);
        if turn.is_stopping {
            // What was to follow may not be meant any longer; it can be edited, or deleted.
            self.queued.retain(|line| Command::of(line) != Command::Quit);
            let lines = self.queued.drain(..).chain([std::mem::take(&mut self.draft)]);
            self.draft = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
        }
        self.cost.turns += 1;
        turn.progress.finish(SystemClock.now());
        match ended? {
            Some((event, reply)) if purpose == Purpose::Reply => self.ended(&event, &reply),
            Some((event, _)) => self.compacted(&event, turn.compacted),
            None => Ok(()),
        }
    }

    /// Shows the turn's events; returns the last one, and the reply.
    async fn follow(
        &mut self,
        session: &ChatSession,
        turn: &mut Turn,
    ) -> Result<Option<(AgentEvent, String)>, Fault> {
        let mut frames = progress::frames();
        loop {
            tokio::select! {
                biased;
                signal = self.signals.next() => {
                    if turn.is_stopping || signal != Signal::Interrupt {
                        return Err(anyhow!("stopped before the turn had ended")).or_exit(signal.exit());
                    }
                    turn.cancel("Ctrl-C").await;
                }
                () = self.continued.next() => self.approvals.continued(&mut *turn.progress),
                input = self.approvals.next() => match self.approvals.input(input, &mut *turn.progress) {
                    Taken::Answers(answers) => confirm(&*session.session, answers, &mut *turn.progress).await,
                    Taken::Line(line) => self.meanwhile(session, turn, line).await,
                    Taken::End => {
                        turn.progress.note("the chat ends after this turn");
                        self.queued.push_back("/quit".to_owned());
                    }
                    Taken::Escape if !turn.is_stopping => turn.cancel("Esc").await,
                    Taken::Escape => {}
                },
                // Drawing would disturb a person who types where the terminal echoes it.
                _ = frames.tick(), if turn.is_stopping || self.approvals.is_drawn() => {
                    if self.continued.is_before().await {
                        self.approvals.continued(&mut *turn.progress);
                    }
                    turn.progress.tick(SystemClock.now());
                }
                event = turn.begun.events.next() => {
                    let Some(event) = event.transpose().advise().or_exit(Exit::Failed)? else { return Ok(None) };
                    if let Some(reply) = self.event(session, turn, &event).await {
                        return Ok(Some((event, reply)));
                    }
                }
            }
        }
    }

    /// Shows what changes nothing, and tells the agent what is for this turn; other lines follow
    /// the turn.
    async fn meanwhile(&mut self, session: &ChatSession, turn: &mut Turn, line: String) {
        let shown = match self.shown(session, &Command::of(&line)).await {
            Ok(None) => None,
            Ok(Some(Shown::List(list, note))) if list.is_empty() => Some(note.to_owned()),
            Ok(Some(Shown::List(text, _) | Shown::Note(text))) => Some(text),
            Err(error) => Some(format!("error: {}", in_one_line(&error))),
        };
        if let Some(text) = shown {
            return text.lines().for_each(|line| turn.progress.note(line));
        }
        let Command::Now(text) = Command::of(&line) else {
            let hint = if self.queued.is_empty() { "; /now TEXT is read within it" } else { "" };
            turn.progress.note(&format!("after this turn: {line}{hint}"));
            return self.queued.push_back(line);
        };
        let root = AgentKey::from_lossy(fold::ROOT);
        match session.session.send(&root, text, SendMode::Steer).await {
            Ok(()) => turn.progress.note(&format!("told the agent: {text}")),
            // The turn is about to end.
            Err(error) if error.has_code(&Code::OnlyWithinTurn) => self.queued.push_back(text.to_owned()),
            Err(error) => turn.progress.note(&format!("error: {:#}", advised(error))),
        }
    }

    /// Shows an event; returns the reply if it is the last one.
    async fn event(&mut self, session: &ChatSession, turn: &mut Turn, event: &AgentEvent) -> Option<String> {
        turn.progress.event(event);
        self.approvals.event(event);
        confirm(&*session.session, self.approvals.granted(), &mut *turn.progress).await;
        if !turn.is_stopping {
            self.approvals.ask(&mut *turn.progress);
        }
        match &event.kind {
            EventKind::StateCheckpoint { agent_key, messages, .. } if agent_key.as_str() == fold::ROOT => {
                turn.compacted = Some(messages.len());
            }
            EventKind::AgentEnd { usage, .. } if event.is_root() => {
                self.cost.add(usage.inclusive_cost);
            }
            _ => {}
        }
        turn.replies.event(event)
    }

    fn ended(&mut self, event: &AgentEvent, reply: &str) -> Result<(), Fault> {
        if let EventKind::AgentEnd { outcome, error, .. } = &event.kind {
            if *outcome == Outcome::Success {
                return print_reply(reply, self.terminal);
            }
            let why =
                error.as_ref().map_or_else(|| outcome.as_str().to_owned(), |error| error.message.clone());
            self.complain(&anyhow!("{why}; /resume resumes the turn"));
        }
        Ok(())
    }

    /// Says what a compaction has left.
    fn compacted(&mut self, event: &AgentEvent, messages: Option<usize>) -> Result<(), Fault> {
        let is_done = matches!(event.kind, EventKind::AgentEnd { outcome: Outcome::Success, .. });
        match messages {
            _ if !is_done => return self.ended(event, ""),
            Some(1) => self.say("the conversation has 1 message now"),
            Some(messages) => self.say(&format!("the conversation has {messages} messages now")),
            None => self.say("the conversation is as short as it can be"),
        }
        Ok(())
    }
}

impl Turn {
    /// Asks all agents to stop. If the server can't be reached, the turn continues, and its events
    /// show that.
    async fn cancel(&mut self, by: &'static str) {
        self.is_stopping = true;
        self.progress.note("cancelling the turn… press Ctrl-C again to abort");
        let _ = timeout(CANCEL_TIMEOUT, self.begun.run.cancel(CancelReason::user(by))).await;
    }
}
