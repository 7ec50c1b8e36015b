//! `mainstem chat`: turn by turn, with an agent of this machine or of a server.

mod command;
mod editor;
mod session;
mod turn;

use std::{
    collections::VecDeque,
    fmt,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow, bail};
use mainstem::{api::Begun, message::Message};
use rustyline::completion::unescape;

use self::{
    command::{Command, help},
    editor::{Editor, Entry},
    session::ChatSession,
    turn::Purpose,
};
use crate::{
    approval::Approvals,
    args::{Chat, Log, Source},
    attachments::{Attachments, mentioned},
    config::Setting,
    exit::{Exit, Fault, OrExit, in_one_line, shut_down},
    go_on::Given,
    print::print,
    progress,
    signals::{Continued, Signal, Signals},
    store, telemetry,
    terminal::Terminal,
};

pub(crate) fn run(args: &Chat, config: &Source, terminal: Terminal) -> Result<Exit, Fault> {
    if terminal.stdin && !terminal.stderr {
        let why = "the prompt and the questions of a chat appear on stderr, which is not your terminal";
        progress::on_screen(&format!("error: {why}"));
        return Err(anyhow!(why)).or_exit(Exit::Usage);
    }
    let _telemetry = telemetry::start(Log::Off, terminal).or_exit(Exit::Config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().or_exit(Exit::Failed)?;
    let exit = runtime.block_on(async {
        let mut session = ChatSession::open(args, config, terminal).await?;
        let mut dialog = Dialog {
            args: args.clone(),
            source: config,
            terminal,
            approvals: Approvals::new(std::mem::take(&mut session.allowed), terminal),
            continued: Continued::new(),
            signals: Signals::new().or_exit(Exit::Failed)?,
            attachments: Attachments::default(),
            queued: VecDeque::new(),
            draft: String::new(),
            has_failed: false,
            cost: Spent::default(),
            editor: editor(terminal),
        };
        let (session, exit) = dialog.run(session).await;
        drop(dialog.editor.take());
        if let Some(session) = session {
            dialog.offer(&session);
            session.close(terminal).await;
        }
        exit
    });
    shut_down(runtime);
    exit
}

struct Dialog<'a> {
    args: Chat,
    source: &'a Source,
    terminal: Terminal,
    /// Reads stdin, for turns and for answers.
    approvals: Approvals,
    continued: Continued,
    signals: Signals,
    /// Files for the next turn.
    attachments: Attachments,
    /// Lines that were typed during a turn.
    queued: VecDeque<String>,
    /// The beginning of a line that was typed during a turn.
    draft: String,
    has_failed: bool,
    cost: Spent,
    /// At a terminal.
    editor: Option<Editor>,
}

/// What the turns of a chat have cost.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    turns: usize,
    /// In millionths of a dollar.
    cost: u64,
    /// Whether the cost of a turn is unknown.
    is_more: bool,
}

impl Spent {
    fn add(&mut self, cost: Option<u64>) {
        self.cost += cost.unwrap_or_default();
        self.is_more |= cost.is_none();
    }
}

impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let turns = if self.turns == 1 { "turn" } else { "turns" };
        write!(f, "{} {turns}, ", self.turns)?;
        match (self.cost, self.is_more) {
            (0, true) => f.write_str("unknown cost"),
            (cost, true) => write!(f, "at least {}", progress::cost(cost)),
            (cost, false) => f.write_str(&progress::cost(cost)),
        }
    }
}

/// What a command shows that changes nothing.
enum Shown {
    Note(String),
    /// A list, and the note that replaces an empty one.
    List(String, &'static str),
}

/// What `/model` takes for the model that a chat has without the flag.
const DEFAULT: &str = "default";

/// What becomes of the chat after a line.
enum Then {
    GoOn,
    /// The session is opened again, with the present arguments.
    Reopen,
    Leave,
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
    /// Runs to the end of the chat; returns the session, unless it can't be opened again.
    async fn run(&mut self, mut session: ChatSession) -> (Option<ChatSession>, Result<Exit, Fault>) {
        self.say(&format!("{}; /help lists the commands", session.greeting));
        loop {
            match self.lines(&mut session).await {
                Ok(None) => match self.reopened(session).await {
                    Ok(reopened) => session = reopened,
                    Err(error) => return (None, Err(error)),
                },
                Ok(Some(exit)) => return (Some(session), Ok(exit)),
                Err(error) => return (Some(session), Err(error)),
            }
        }
    }

    /// Does what each line says; returns `None` if the session is to be opened again.
    async fn lines(&mut self, session: &mut ChatSession) -> Result<Option<Exit>, Fault> {
        let mut is_leaving = false;
        loop {
            let text = match self.entry().await? {
                Entry::Text(text) => text,
                Entry::Interrupt if is_leaving => return Ok(Some(Signal::Interrupt.exit())),
                Entry::Interrupt => {
                    is_leaving = true;
                    self.say("press Ctrl-C again to leave");
                    continue;
                }
                Entry::End => break,
            };
            is_leaving = false;
            match self.line(session, &text).await? {
                Then::GoOn => {}
                Then::Reopen => return Ok(None),
                Then::Leave => break,
            }
        }
        // Scripts read the exit code.
        Ok(Some(if self.has_failed && !self.terminal.stdin { Exit::Failed } else { Exit::Reply }))
    }

    /// Returns what is entered next, or was typed during the last turn.
    async fn entry(&mut self) -> Result<Entry, Fault> {
        if let Some(line) = self.queued.pop_front() {
            self.say(&format!("> {line}"));
            return Ok(Entry::Text(line));
        }
        let entry = async {
            if let Some(editor) = self.editor.as_mut().filter(|_| !self.approvals.is_reading()) {
                return editor.entry(&mut self.draft).await;
            }
            if self.terminal.stdin {
                progress::prompt("> ");
            }
            self.approvals.typed().await.map_or(Entry::End, |line| Entry::Text(line.text().to_owned()))
        };
        let continued = async {
            loop {
                self.continued.next_at_prompt().await;
            }
        };
        tokio::select! {
            biased;
            signal = self.signals.next() => Err(anyhow!("{}", signal.reason())).or_exit(signal.exit()),
            never = continued => match never {},
            entry = entry => Ok(entry),
        }
    }

    /// Does what a line says.
    async fn line(&mut self, session: &mut ChatSession, line: &str) -> Result<Then, Fault> {
        match Command::of(line) {
            Command::Nothing => {}
            Command::Quit => return Ok(Then::Leave),
            Command::Attach(file) => self.attach(file),
            Command::Model(name) if !name.is_empty() => return Ok(self.change_model(session, name)),
            Command::Plan(is_on) => {
                self.args.plan = Some(is_on);
                self.say(match is_on {
                    true => "plan mode begins with the next line",
                    false => "plan mode ends with the next line",
                });
                if session.plan(is_on) {
                    return Ok(Then::Reopen);
                }
            }
            Command::Compact => {
                let begun = self.unless_stopped(session.compact()).await?;
                self.begun(session, begun, line, Purpose::Compaction).await?;
            }
            Command::Resume => {
                let begun = self.unless_stopped(session.resume()).await?;
                self.begun(session, begun, line, Purpose::Reply).await?;
            }
            // Between turns there is none to enter.
            Command::Say(input) | Command::Now(input) => self.send(session, input).await?,
            command => match self.shown(session, &command).await {
                Ok(Some(Shown::List(list, _))) if !list.is_empty() => print(&list)?,
                Ok(Some(Shown::List(_, note))) => self.say(note),
                Ok(Some(Shown::Note(note))) => progress::say(&note, self.terminal),
                Ok(None) => {}
                Err(error) => self.complain(&error),
            },
        }
        Ok(Then::GoOn)
    }

    /// Begins a turn with a message, and follows it.
    async fn send(&mut self, session: &ChatSession, input: &str) -> Result<(), Fault> {
        let message = match self.message(input) {
            Ok(message) => message,
            Err(error) => {
                self.complain(&error);
                return Ok(());
            }
        };
        let begun = self.unless_stopped(session.say(message)).await?;
        if begun.is_ok() {
            self.attachments = Attachments::default();
        }
        self.begun(session, begun, input, Purpose::Reply).await
    }

    /// Returns the message with the files that are attached or mentioned.
    ///
    /// # Errors
    /// A file can't be attached.
    fn message(&self, input: &str) -> anyhow::Result<Message> {
        let mut attachments = self.attachments.clone();
        let (files, missing) = mentioned(input);
        for name in missing {
            let warning = format!("warning: no file is named {name:?}, so @{name} stays a word");
            progress::say(&warning, self.terminal);
        }
        for path in files {
            attachments.add(&path).with_context(|| format!("@{}", path.display()))?;
            self.say(&format!("{} goes with it", path.display()));
        }
        Ok(attachments.into_message(input))
    }

    /// Attaches a file to the next turn.
    fn attach(&mut self, path: &str) {
        let path = attached(path);
        let path = path.as_path();
        if path.as_os_str().is_empty() {
            self.attachments = Attachments::default();
            return self.say("no files go with the next line");
        }
        let added = self.attachments.add(path).with_context(|| format!("/attach {}", path.display()));
        match added {
            Ok(()) => self.say(&format!("{} goes with the next line", path.display())),
            Err(error) => self.complain(&error),
        }
    }

    /// Continues the session with another model.
    fn change_model(&mut self, session: &ChatSession, name: &str) -> Then {
        let is_default = name == DEFAULT;
        if !is_default && let Err(error) = session.check_model(name) {
            self.complain(&error);
            return Then::GoOn;
        }
        match is_default {
            true => self.say("the model is that of the agent"),
            false => self.say(&format!("the model is {name}")),
        }
        // As the flag does, it goes before the model of the agent's file.
        self.args.settings.model = (!is_default).then(|| Setting::new(name.to_owned(), "--model"));
        Then::Reopen
    }

    /// Opens the session again, with the present arguments.
    async fn reopened(&mut self, session: ChatSession) -> Result<ChatSession, Fault> {
        self.args.session = session.recorded_as().cloned();
        session.close(self.terminal).await;
        ChatSession::open(&self.args, self.source, self.terminal).await
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
        purpose: Purpose,
    ) -> Result<(), Fault> {
        match begun {
            Ok(begun) => self.turn(session, begun, title, purpose).await,
            Err(error) => {
                self.complain(&error);
                Ok(())
            }
        }
    }

    /// Returns what a command shows that changes nothing; `None` for other commands.
    ///
    /// # Errors
    /// The session can't be read.
    async fn shown(&self, session: &ChatSession, command: &Command<'_>) -> anyhow::Result<Option<Shown>> {
        Ok(Some(match command {
            Command::Help => Shown::Note(help()),
            Command::Unknown(why) => bail!("{why}"),
            Command::Model("") => Shown::Note(session.model()),
            Command::Agents => Shown::List(session.agents().await?, "no agent was spawned yet"),
            Command::Tasks => Shown::List(session.tasks().await?, "no background tasks"),
            Command::Cost => Shown::List(session.cost(self.cost).await?, ""),
            _ => return Ok(None),
        }))
    }

    /// Prints how to come back.
    fn offer(&self, session: &ChatSession) {
        if let Some(id) = session.recorded_as().filter(|_| self.cost.turns > 0) {
            let given = Given {
                agent: self.args.agent.as_deref(),
                settings: &self.args.settings,
                server: self.args.at.server.as_deref(),
                journal: self.args.journal.as_ref(),
            };
            self.say(&format!("to come back: {}", given.command("chat", id, "")));
        }
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
