//! `mainstem run --server`: the run is another process's, and is shown, asked about and stopped here.

use std::{fs, path::Path, pin::Pin, time::Duration};

use anyhow::Context;
use futures_util::FutureExt;
use mainstem::{message::Message, prelude::Decision};
use mainstem_event::{AgentEvent, Clock, EventFilter, EventKind, Outcome, SystemClock};
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, Sleep, interval, sleep};

use super::{drive::Signals, end::Stop, filter::filter, ledger::Ledger, setup::prompt};
use crate::{
    args::{self, Background},
    ask::Questions,
    chat::confirmation,
    exit::{self, Exit, Fault, OrExit},
    output::{Ending, Output, Stdout},
    progress::{self, Progress},
    remote::{Events, Remote, escape},
    signals,
    terminal::Terminal,
};

const FRAME: Duration = Duration::from_millis(100);

const FOREVER: Duration = Duration::from_secs(60 * 60 * 24 * 365);

/// Runs what the command line says on a server.
pub(super) fn run(args: &args::Run, remote: Remote, terminal: Terminal) -> Result<Exit, Fault> {
    let body = body(args, terminal).or_exit(Exit::Usage)?;
    let record = args.record.as_deref().map(super::create).transpose().or_exit(Exit::Usage)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().or_exit(Exit::Failed)?;
    let signals = Signals::new(signals::watch().or_exit(Exit::Failed)?);
    let stdout = Stdout::start(std::io::stdout()).or_exit(Exit::Failed)?;
    let exit = runtime.block_on(async {
        let begun = Begun::new(args, remote, &body).await.or_exit(Exit::Failed)?;
        let (mode, objection) = terminal.mode(args.progress, args.output);
        let title = body["input"].as_str().unwrap_or(&begun.session);
        let mut progress = progress::on_stderr(mode, terminal, title);
        objection.into_iter().for_each(|objection| progress.note(&format!("warning: {objection}")));
        let (output, filter) = (Output::new(args.output, terminal.stdout), filter(args, &begun.session));
        let (ledger, questions) = (Ledger::new(record), Questions::default());
        let shown =
            There { args, begun, signals, stdout, output, filter, ledger, progress, questions, end: None };
        shown.show().await
    });
    // What still blocks is not waited for.
    runtime.shutdown_background();
    exit
}

/// What the server is asked for.
fn body(args: &args::Run, terminal: Terminal) -> anyhow::Result<Value> {
    let people = terminal.has_person() && args.prompt.as_deref() != Some("-");
    let background = match args.background {
        Background::Wait => "wait",
        Background::Detach => "detach",
        Background::Cancel => "cancel",
    };
    let mut budget = json!({});
    if let Some(tokens) = args.budget_tokens {
        budget["tokens"] = json!(tokens);
    }
    if let Some(cost) = args.budget_cost {
        budget["cost"] = json!(cost);
    }
    let mut options =
        json!({ "people": people, "plan_mode": args.plan, "background": background, "budget": budget });
    if let Some(path) = &args.output_schema {
        options["output_schema"] = schema(path)?;
    }
    Ok(if args.resume {
        json!({ "resume": true, "options": options })
    } else {
        json!({ "input": prompt(args, false)?, "options": options })
    })
}

fn schema(path: &Path) -> anyhow::Result<Value> {
    let read = || anyhow::Ok(serde_json::from_str(&fs::read_to_string(path)?)?);
    read().with_context(|| format!("--output-schema {}", path.display()))
}

/// A run that the server has begun.
struct Begun {
    remote: Remote,
    session: String,
    run: String,
    events: Events,
}

impl Begun {
    async fn new(args: &args::Run, remote: Remote, body: &Value) -> anyhow::Result<Self> {
        let session = args.session.clone().unwrap_or_else(crate::chat::new_session);
        let path = format!("/sessions/{}", escape(&session));
        let begun = remote.post(&format!("{path}/runs"), body).await?;
        let run = begun["id"].as_str().context("the server's answer is no run")?.to_owned();
        let after = begun["first_seq"].as_u64().unwrap_or(1).saturating_sub(1);
        let events = remote.events(format!("{path}/events?run={}", escape(&run)), after);
        Ok(Self { remote, session, run, events })
    }

    /// If it is not heard, the run goes on, which is seen.
    async fn cancel(&self) {
        let _ = self.remote.post(&format!("/runs/{}/cancel", escape(&self.run)), &json!({})).await;
    }

    async fn confirm(&self, id: &str, decision: Decision) {
        let path = format!("/sessions/{}/confirmations/{}", escape(&self.session), escape(id));
        let _ = self.remote.post(&path, &confirmation(decision)).await;
    }

    /// What it answered, as far as the server is reached.
    async fn reply(&self) -> Option<Message> {
        let mut known = self.remote.get(&format!("/runs/{}", escape(&self.run))).await.ok()?;
        serde_json::from_value(known["message"].take()).ok()
    }
}

struct There<'a> {
    args: &'a args::Run,
    begun: Begun,
    signals: Signals,
    stdout: Stdout,
    output: Output,
    filter: EventFilter,
    ledger: Ledger,
    progress: Box<dyn Progress>,
    questions: Questions,
    /// The root's last event.
    end: Option<AgentEvent>,
}

impl There<'_> {
    async fn show(mut self) -> Result<Exit, Fault> {
        let stopped = match self.output.begin() {
            Some(piece) => self.write(piece).await.err(),
            None => None,
        };
        let stopped = match stopped {
            Some(stop) => Some(stop),
            None => self.follow().await?,
        };
        self.progress.finish(SystemClock.now());
        let (args, exit) = (self.args, self.exit());
        if matches!(stopped, Some(Stop::Stdout(_))) {
            return stopped.map_or(exit, |stop| stop.exit(args));
        }
        let is_stopped = stopped.is_some();
        let exit = stopped.map_or(exit, |stop| stop.exit(args));
        match self.write_end().await {
            Err(stop) if !is_stopped => stop.exit(args),
            _ => exit,
        }
    }

    /// Shows what comes; why it was stopped, if it was.
    async fn follow(&mut self) -> Result<Option<Stop>, Fault> {
        let mut frames = interval(FRAME);
        frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut timeout: Pin<Box<Sleep>> = Box::pin(sleep(self.args.timeout.unwrap_or(FOREVER).min(FOREVER)));
        let mut give_up: Pin<Box<Sleep>> = Box::pin(sleep(FOREVER));
        let mut stopped = None;
        loop {
            if let Some(error) = self.ledger.take_trouble() {
                self.begun.cancel().await;
                return Ok(Some(Stop::Record(error)));
            }
            let stop = tokio::select! {
                biased;
                signal = self.signals.next() => Stop::Signal(signal),
                () = &mut timeout, if stopped.is_none() => Stop::Timeout,
                () = &mut give_up, if stopped.is_some() => return Ok(stopped),
                line = self.questions.line(), if stopped.is_none() => {
                    match self.questions.answer(line) {
                        Ok(Some((id, decision))) => self.begun.confirm(id.as_str(), decision).await,
                        Ok(None) => {}
                        Err(how) => self.progress.ask(how),
                    }
                    self.ask();
                    continue;
                }
                _ = frames.tick(), if !self.questions.is_open() => {
                    self.progress.tick(SystemClock.now());
                    continue;
                }
                event = self.begun.events.next() => match event.or_exit(Exit::Failed)? {
                    None => return Ok(stopped),
                    Some(event) => match self.event(&event).await {
                        Ok(()) => continue,
                        Err(stop) => stop,
                    },
                },
            };
            if stopped.is_some() || stop.is_at_once() {
                self.begun.cancel().await;
                return Ok(stopped.or(Some(stop)));
            }
            self.progress.note(&stop.note(self.ledger.fleet.running().count()));
            self.begun.cancel().await;
            give_up.as_mut().reset(Instant::now() + self.args.grace.min(FOREVER));
            stopped = Some(stop);
        }
    }

    async fn event(&mut self, event: &AgentEvent) -> Result<(), Stop> {
        self.ledger.event(event);
        if event.ends_run() {
            self.end = Some(event.clone());
        }
        self.questions.event(event);
        self.ask();
        if !self.filter.matches(event) {
            return Ok(());
        }
        self.progress.event(event);
        match self.output.event(event) {
            Some(piece) => self.write(piece).await,
            None => Ok(()),
        }
    }

    fn ask(&mut self) {
        if let Some(question) = self.questions.put() {
            self.progress.ask(&question);
        }
    }

    async fn write(&mut self, piece: bytes::Bytes) -> Result<(), Stop> {
        // A reader that stalls holds this up; a signal is heard all the same, and a second one ends the process.
        self.stdout.room(true).await.map_err(Stop::Stdout)?.send(piece);
        Ok(())
    }

    fn exit(&self) -> Result<Exit, Fault> {
        let Some(EventKind::AgentEnd { outcome, error, .. }) = self.end.as_ref().map(|end| &end.kind) else {
            return Err(anyhow::anyhow!("the run ended without a reply")).or_exit(Exit::Failed);
        };
        let failed = &self.ledger.failed;
        let exit = exit::of_end(*outcome, error.as_ref(), self.args.strict_children && !failed.is_empty());
        exit::told(exit, error.as_ref().map(|error| error.message.clone()), failed)
    }

    /// Writes the last of the result.
    async fn write_end(mut self) -> Result<(), Stop> {
        let reply = self.begun.reply().await;
        let (outcome, error, cost) = match self.end.as_ref().map(|end| &end.kind) {
            Some(EventKind::AgentEnd { outcome, error, usage, .. }) => {
                (*outcome, error.clone(), usage.inclusive_cost)
            }
            _ => (Outcome::Cancelled, None, None),
        };
        let run_id = self.begun.run.clone();
        let piece = self.output.end(&Ending {
            run_id: &run_id,
            outcome,
            reply: reply.as_ref(),
            error,
            cost,
            fleet: &self.ledger.fleet,
            diagnostics: None,
        });
        if let Some(piece) = piece {
            self.write(piece).await?;
        }
        self.stdout.finish().boxed().await.map_err(Stop::Stdout)
    }
}
