//! The one loop that waits: for events, room on stdout, signals, limits, the clock.

use std::{
    cell::RefCell,
    collections::{HashSet, VecDeque},
    pin::Pin,
    rc::Rc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt, stream::LocalBoxStream};
use mainstem::{
    event::EventStreamExt,
    prelude::{Harness, Run, RunHandle},
};
use mainstem_event::{AgentEvent, Clock, EventFilter, EventKind, SystemClock};
use tokio::{
    sync::{mpsc::OwnedPermit, oneshot},
    time::{Instant, Interval, MissedTickBehavior, Sleep, interval, sleep},
};

use super::{end::Stop, filter::filter, ledger::Ledger};
use crate::{
    args,
    ask::{Line, Questions},
    output::{Output, Stdout},
    progress::Progress,
    signals::Signal,
};

/// How often progress is redrawn at most.
const FRAME: Duration = Duration::from_millis(100);

/// As good as never.
const FOREVER: Duration = Duration::from_secs(60 * 60 * 24 * 365);

/// Where everything goes that a run brings.
pub(super) struct Sinks {
    pub(super) ledger: Ledger,
    pub(super) output: Output,
    pub(super) stdout: Stdout,
    pub(super) progress: Box<dyn Progress>,
    pub(super) signals: oneshot::Receiver<Signal>,
    pub(super) warnings: Warnings,
}

/// What is wrong with the harness, each thing said once: an MCP server does not start before it is needed.
pub(super) struct Warnings {
    harness: Harness,
    said: HashSet<String>,
}

/// A run under way.
pub(super) struct Drive {
    pub(super) handle: RunHandle,
    pub(super) ledger: Rc<RefCell<Ledger>>,
    pub(super) output: Output,
    pub(super) stdout: Stdout,
    pub(super) progress: Box<dyn Progress>,
    pub(super) signals: Signals,
    warnings: Warnings,
    questions: Questions,
    /// What waits for room on stdout.
    pub(super) queue: VecDeque<Bytes>,
    pub(super) stop: Option<Stop>,
    is_given_up: bool,
    events: LocalBoxStream<'static, AgentEvent>,
    filter: EventFilter,
    clock: Clocks,
}

/// The first signal, told once.
pub(super) struct Signals(Option<oneshot::Receiver<Signal>>);

struct Clocks {
    frames: Interval,
    timeout: Pin<Box<Sleep>>,
    give_up: Pin<Box<Sleep>>,
    grace: Duration,
}

/// What there is to do next.
enum Next {
    Event(Option<AgentEvent>),
    Room(OwnedPermit<Bytes>),
    Frame,
    Line(Option<Line>),
    Stop(Stop),
    GiveUp,
}

impl Drive {
    pub(super) fn new(args: &args::Run, sinks: Sinks, run: Run) -> Self {
        let Sinks { ledger, output, stdout, progress, signals, warnings } = sinks;
        let (handle, ledger) = (run.handle(), Rc::new(RefCell::new(ledger)));
        let filter = filter(args, handle.session().id().as_str());
        let keep = ledger.clone();
        let seen = run.inspect(move |event| keep.borrow_mut().event(event));
        let events =
            if args.gate_root_text { seen.gate_root_text().boxed_local() } else { seen.boxed_local() };
        Self {
            handle,
            ledger,
            output,
            stdout,
            progress,
            signals: Signals::new(signals),
            warnings,
            questions: Questions::default(),
            queue: output.begin().into_iter().collect(),
            stop: None,
            is_given_up: false,
            events,
            filter,
            clock: Clocks::new(args),
        }
    }

    /// Polls the run until it has ended, or there is no more waiting for it. Then nothing of it is at work any more, and everything
    /// that it said is on its way.
    pub(super) async fn until_end(&mut self) {
        loop {
            match self.next().await {
                Next::Event(Some(event)) => self.event(&event),
                Next::Event(None) => break,
                Next::GiveUp => {
                    self.is_given_up = true;
                    break;
                }
                Next::Room(room) => _ = self.queue.pop_front().map(|piece| room.send(piece)),
                Next::Line(line) => self.answer(line),
                Next::Frame => self.progress.tick(SystemClock.now()),
                Next::Stop(stop) if self.stop.is_some() || stop.is_at_once() => {
                    self.stop.get_or_insert(stop);
                    break;
                }
                Next::Stop(stop) => self.cancel(stop),
            }
        }
        self.events = futures_util::stream::empty().boxed_local();
        self.end_tasks().await;
        self.catch_up();
    }

    /// Stops the background tasks that are left: gently, unless there is no more patience.
    async fn end_tasks(&mut self) {
        let tasks = self.handle.session().task_set().clone();
        let grace = if self.is_patient() { self.clock.grace } else { Duration::ZERO };
        tokio::select! {
            biased;
            () = tasks.shutdown(grace) => return,
            signal = self.signals.next() => drop(self.stop.replace(Stop::Signal(signal))),
        }
        tasks.shutdown(Duration::ZERO).await;
    }

    async fn next(&mut self) -> Next {
        let is_stopping = self.stop.is_some();
        if let Some(error) = self.ledger.borrow_mut().take_trouble() {
            return Next::Stop(Stop::Record(error));
        }
        let Clocks { frames, timeout, give_up, .. } = &mut self.clock;
        tokio::select! {
            biased;
            signal = self.signals.next() => Next::Stop(Stop::Signal(signal)),
            () = timeout, if !is_stopping => Next::Stop(Stop::Timeout),
            () = give_up, if is_stopping => Next::GiveUp,
            line = self.questions.line(), if !is_stopping => Next::Line(line),
            // While a person types, nothing is drawn.
            _ = frames.tick(), if is_stopping || !self.questions.is_open() => Next::Frame,
            room = self.stdout.room(!self.queue.is_empty()) => {
                room.map_or_else(|error| Next::Stop(Stop::Stdout(error)), Next::Room)
            }
            // A run that is cancelled must be polled to end, even if nobody reads.
            event = self.events.next(), if self.queue.is_empty() || is_stopping => Next::Event(event),
        }
    }

    fn event(&mut self, event: &AgentEvent) {
        if self.filter.matches(event) {
            self.show(event);
        }
        // By then it is known which tools there are.
        if let EventKind::ModelCallStart { .. } = event.kind {
            self.warnings.news().for_each(|warning| self.progress.note(&warning));
        }
        // Also of those that are not shown.
        self.questions.event(event);
        self.ask();
    }

    /// Whether things may end at their own pace.
    pub(super) fn is_patient(&self) -> bool {
        !self.is_given_up && !self.stop.as_ref().is_some_and(Stop::is_at_once)
    }

    /// Answers the open question and goes on to the next, or says how to answer.
    fn answer(&mut self, line: Option<Line>) {
        match self.questions.answer(line) {
            // If nobody waits for it any more, its result is on its way.
            Ok(Some((id, decision))) => _ = self.handle.confirm(&id, decision),
            Ok(None) => {}
            Err(how) => self.progress.ask(how),
        }
        self.ask();
    }

    fn ask(&mut self) {
        if let Some(question) = self.questions.put() {
            self.progress.ask(&question);
        }
    }

    fn show(&mut self, event: &AgentEvent) {
        self.queue.extend(self.output.event(event));
        self.progress.event(event);
    }

    /// Asks all agents to stop, and gives them time.
    fn cancel(&mut self, stop: Stop) {
        let agents = self.ledger.borrow().fleet.running().count();
        self.progress.note(&stop.note(agents));
        self.handle.cancel();
        let session = self.handle.session();
        session.task_set().cancel_below(session.id());
        self.clock.give_up.as_mut().reset(Instant::now() + self.clock.grace);
        self.stop = Some(stop);
    }

    /// Takes in what was said after the run, or when it was dropped.
    fn catch_up(&mut self) {
        let next = self.ledger.borrow().fleet.seq + 1;
        let mut rest = self.handle.subscribe_from(next);
        while let Some(event) = rest.try_next() {
            self.ledger.borrow_mut().event(&event);
            self.event(&event);
        }
        self.progress.finish(SystemClock.now());
    }
}

impl Warnings {
    /// Those that are said already.
    pub(super) fn new(harness: Harness, said: &[String]) -> Self {
        Self { harness, said: said.iter().cloned().collect() }
    }

    fn news(&mut self) -> impl Iterator<Item = String> {
        self.harness.warnings().filter(|warning| self.said.insert(warning.clone()))
    }
}

impl Signals {
    pub(super) fn new(first: oneshot::Receiver<Signal>) -> Self {
        Self(Some(first))
    }

    pub(super) async fn next(&mut self) -> Signal {
        if let Some(first) = &mut self.0 {
            let signal = first.await;
            self.0 = None;
            if let Ok(signal) = signal {
                return signal;
            }
        }
        std::future::pending().await
    }
}

impl Clocks {
    fn new(args: &args::Run) -> Self {
        let mut frames = interval(FRAME);
        frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let timeout = Box::pin(sleep(args.timeout.unwrap_or(FOREVER).min(FOREVER)));
        Self { frames, timeout, give_up: Box::pin(sleep(FOREVER)), grace: args.grace.min(FOREVER) }
    }
}
