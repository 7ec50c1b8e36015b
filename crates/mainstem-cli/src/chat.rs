//! `mainstem chat`: turn by turn, with an agent of this machine or of a server.

mod editor;
mod session;

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use futures_util::StreamExt;
use mainstem::api::Begun;
use mainstem_event::{AgentEvent, CancelReason, Clock, EventKind, Outcome, SystemClock, fold};

use rustyline::completion::unescape;
use tokio::time::timeout;

use self::{
    editor::{Editor, Entry},
    session::ChatSession,
};
use crate::{
    approval::{Approvals, confirm},
    args::{Chat, Format, Log, Source},
    attachments::Attachments,
    exit::{Exit, Fault, OrExit, in_one_line},
    host::{Advise, CANCEL_TIMEOUT},
    print::{print, print_reply},
    progress,
    replies::Replies,
    signals::{Continued, Signal, Signals},
    store, telemetry,
    terminal::Terminal,
};

/// The commands, and what each does.
const COMMANDS: [(&str, &str); 6] = [
    (ATTACH, "send FILE, an image, a PDF, audio or text, with the next line"),
    ("/agents", "list the children"),
    (COMPACT, "shorten the conversation"),
    ("/resume", "resume a turn without an answer"),
    ("/help", "show these commands"),
    ("/quit", "end the chat, as Ctrl-D does"),
];

/// Returns the help.
fn help() -> String {
    let commands = COMMANDS.map(|(name, does)| format!("  {name:<10}{does}"));
    let keys = "A line is a turn, which Ctrl-C cancels. Alt-Enter begins another line of it.";
    format!("{keys}\n{}", commands.join("\n"))
}

/// Returns what is entered next. Dropping the future loses nothing.
async fn entry(editor: &mut Option<Editor>, approvals: &mut Approvals, terminal: Terminal) -> Entry {
    if let Some(editor) = editor.as_mut().filter(|_| !approvals.is_reading()) {
        return editor.entry().await;
    }
    if terminal.stdin {
        progress::prompt("> ");
    }
    approvals.typed().await.map_or(Entry::End, |line| Entry::Text(line.text().to_owned()))
}

/// The command that shortens the conversation.
const COMPACT: &str = "/compact";

/// The command that attaches a file.
const ATTACH: &str = "/attach";

pub(crate) fn run(args: &Chat, config: &Source, terminal: Terminal) -> Result<Exit, Fault> {
    let _telemetry = telemetry::start(Log::Off, terminal).or_exit(Exit::Config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().or_exit(Exit::Failed)?;
    let exit = runtime.block_on(async {
        let mut session = ChatSession::open(args, config, terminal).await?;
        let mut dialog = Dialog {
            args,
            terminal,
            approvals: Approvals::new(std::mem::take(&mut session.allowed)),
            continued: Continued::new(),
            signals: Signals::new().or_exit(Exit::Failed)?,
            attachments: Attachments::default(),
            has_failed: false,
            editor: editor(terminal),
        };
        let exit = dialog.run(&session).await;
        session.close(terminal).await;
        exit
    });
    // Blocking calls, such as name lookups, must not delay the exit.
    runtime.shutdown_background();
    exit
}

struct Dialog<'a> {
    args: &'a Chat,
    terminal: Terminal,
    /// Reads stdin, for turns and for answers.
    approvals: Approvals,
    continued: Continued,
    signals: Signals,
    /// Files for the next turn.
    attachments: Attachments,
    has_failed: bool,
    /// At a terminal.
    editor: Option<Editor>,
}

/// Returns the path of a file to attach, as it was typed, or as Tab has completed it: in quotes, or
/// with backslashes.
fn attached(typed: &str) -> PathBuf {
    if Path::new(typed).exists() {
        return typed.into();
    }
    let bare = typed.strip_prefix('"').map_or(typed, |rest| rest.strip_suffix('"').unwrap_or(rest));
    let is_quoted = bare.len() < typed.len();
    if is_quoted || cfg!(windows) { bare.into() } else { unescape(bare, Some('\\')).as_ref().into() }
}

/// Starts the editor, if both sides of the talk are on a terminal that can have one.
fn editor(terminal: Terminal) -> Option<Editor> {
    let is_possible = terminal.stdin && terminal.stdout && terminal.stderr && !terminal.is_dumb;
    is_possible.then(|| Editor::start(store::history()).ok()).flatten()
}

impl Dialog<'_> {
    async fn run(&mut self, session: &ChatSession) -> Result<Exit, Fault> {
        self.say(&format!("{}; /help lists the commands", session.greeting));
        let mut is_leaving = false;
        loop {
            let entry = tokio::select! {
                biased;
                signal = self.signals.next() => return Ok(signal.exit()),
                entry = entry(&mut self.editor, &mut self.approvals, self.terminal) => entry,
            };
            let text = match entry {
                Entry::Text(text) => text,
                Entry::Interrupt if is_leaving => return Ok(Signal::Interrupt.exit()),
                Entry::Interrupt => {
                    is_leaving = true;
                    self.say("press Ctrl-C again to leave");
                    continue;
                }
                Entry::End => break,
            };
            is_leaving = false;
            match text.trim() {
                "" => {}
                "/quit" | "/exit" => break,
                "/help" => self.say(&help()),
                "/agents" => match session.agents().await {
                    Ok(agents) if agents.is_empty() => self.say("no agent was spawned yet"),
                    Ok(agents) => print(&agents)?,
                    Err(error) => self.complain(&error),
                },
                "/resume" => {
                    let begun = self.unless_stopped(session.resume()).await?;
                    self.begun(session, begun, "/resume").await?;
                }
                COMPACT => {
                    let begun = self.unless_stopped(session.compact()).await?;
                    self.begun(session, begun, COMPACT).await?;
                }
                attach if attach.split_whitespace().next() == Some(ATTACH) => {
                    self.attach(&attach[ATTACH.len()..])
                }
                unknown if unknown.starts_with('/') => {
                    self.say(&format!("unknown command {unknown}\n{}", help()))
                }
                input => {
                    let message = self.attachments.clone().into_message(input);
                    let begun = self.unless_stopped(session.say(message)).await?;
                    if begun.is_ok() {
                        self.attachments = Attachments::default();
                    }
                    self.begun(session, begun, input).await?;
                }
            }
        }
        // Scripts read the exit code.
        Ok(if self.has_failed && !self.terminal.stdin { Exit::Failed } else { Exit::Reply })
    }

    /// Attaches a file to the next turn.
    fn attach(&mut self, path: &str) {
        let path = attached(path.trim());
        let path = path.as_path();
        if path.as_os_str().is_empty() {
            self.attachments = Attachments::default();
            return self.say("no files go with the next line");
        }
        let added = self.attachments.add(path).with_context(|| format!("{ATTACH} {}", path.display()));
        match added {
            Ok(()) => self.say(&format!("{} goes with the next line", path.display())),
            Err(error) => self.complain(&error),
        }
    }

    /// Awaits a future until a signal interrupts it.
    async fn unless_stopped<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Fault> {
        tokio::select! {
            biased;
            signal = self.signals.next() => Err(anyhow!("stopped before the turn had begun")).or_exit(signal.exit()),
            done = work => Ok(done),
        }
    }

    async fn begun(
        &mut self,
        session: &ChatSession,
        begun: anyhow::Result<Begun>,
        title: &str,
    ) -> Result<(), Fault> {
        match begun {
            Ok(begun) => self.turn(session, begun, title).await,
            Err(error) => {
                self.complain(&error);
                Ok(())
            }
        }
    }

    /// Follows a turn to its end.
    async fn turn(&mut self, session: &ChatSession, begun: Begun, title: &str) -> Result<(), Fault> {
        let Begun { run, mut events } = begun;
        let mut progress = progress::on_stderr(self.terminal, self.args.progress, Format::Text, title);
        let (mut replies, mut is_stopping, mut frames) = (Replies::default(), false, progress::frames());
        let mut compacted = None;
        loop {
            tokio::select! {
                biased;
                signal = self.signals.next() => {
                    if is_stopping || signal != Signal::Interrupt {
                        return Err(anyhow!("stopped before the turn had ended")).or_exit(signal.exit());
                    }
                    is_stopping = true;
                    self.approvals.close(&mut *progress);
                    progress.note("cancelling the turn… press Ctrl-C again to abort");
                    // If the server can't be reached, the turn continues, and its events show that.
                    let _ = timeout(CANCEL_TIMEOUT, run.cancel(CancelReason::user("Ctrl-C"))).await;
                }
                () = self.continued.next() => {
                    self.approvals.continued();
                    progress.continued();
                }
                input = self.approvals.next(), if !is_stopping => {
                    let answered = self.approvals.input(input, &mut *progress);
                    confirm(&*session.session, answered, &mut *progress).await;
                }
                // Drawing would disturb a person who types where the terminal echoes it.
                _ = frames.tick(), if is_stopping || self.approvals.is_drawn() => {
                    if self.continued.is_before().await {
                        self.approvals.continued();
                        progress.continued();
                    }
                    progress.tick(SystemClock.now());
                }
                event = events.next() => {
                    let Some(event) = event.transpose().advise().or_exit(Exit::Failed)? else { break };
                    progress.event(&event);
                    self.approvals.event(&event);
                    confirm(&*session.session, self.approvals.granted(), &mut *progress).await;
                    if !is_stopping {
                        self.approvals.ask(&mut *progress);
                    }
                    if let EventKind::StateCheckpoint { agent_key, messages, .. } = &event.kind
                        && agent_key.as_str() == fold::ROOT
                    {
                        compacted = Some(messages.len());
                    }
                    if let Some(reply) = replies.event(&event) {
                        progress.finish(SystemClock.now());
                        return match title {
                            COMPACT => self.compacted(&event, compacted),
                            _ => self.ended(&event, reply),
                        };
                    }
                }
            }
        }
        progress.finish(SystemClock.now());
        Ok(())
    }

    fn ended(&mut self, event: &AgentEvent, reply: String) -> Result<(), Fault> {
        if let EventKind::AgentEnd { outcome, error, .. } = &event.kind {
            if *outcome == Outcome::Success {
                return print_reply(&reply, self.terminal);
            }
            let why =
                error.as_ref().map_or_else(|| outcome.as_str().to_owned(), |error| error.message.clone());
            self.complain(&anyhow!("{why}"));
        }
        Ok(())
    }

    /// Says what a compaction has left.
    fn compacted(&mut self, event: &AgentEvent, messages: Option<usize>) -> Result<(), Fault> {
        let is_done = matches!(event.kind, EventKind::AgentEnd { outcome: Outcome::Success, .. });
        match messages {
            _ if !is_done => return self.ended(event, String::new()),
            Some(1) => self.say("the conversation has 1 message now"),
            Some(messages) => self.say(&format!("the conversation has {messages} messages now")),
            None => self.say("the conversation is as short as it can be"),
        }
        Ok(())
    }

    /// Prints greetings and help, at a terminal only.
    fn say(&self, text: &str) {
        if self.terminal.stdin {
            progress::say(text, self.terminal);
        }
    }

    fn complain(&mut self, error: &anyhow::Error) {
        self.has_failed = true;
        progress::say(&format!("error: {}", in_one_line(error)), self.terminal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_completed_path_is_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("my file.txt");
        std::fs::write(&path, "x").unwrap();
        let plain = path.display().to_string();
        let check = |typed: &str| assert_eq!(attached(typed), path, "{typed}");
        check(&plain);
        check(&format!("\"{plain}\""));
        check(&format!("\"{plain}"));
        #[cfg(unix)]
        check(&plain.replace(' ', "\\ "));
    }
}
