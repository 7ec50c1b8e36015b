//! The loop that waits: for events, room on stdout, signals, limits, the clock.

use std::{
    cell::{Cell, RefCell},
    collections::{HashSet, VecDeque},
    future::ready,
    io::{self, IsTerminal},
    pin::Pin,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::{
    StreamExt, TryStreamExt,
    stream::{self, LocalBoxStream},
};
use mainstem::{
    api::{AnyRun, AnySession, Begun},
    event::EventStreamExt,
    prelude::Harness,
};
use mainstem_event::{AgentEvent, CancelReason, Clock, Diagnostics, EventFilter, EventKind, SystemClock};
use tokio::{
    sync::mpsc::OwnedPermit,
    time::{Instant, Interval, Sleep, sleep, timeout},
};

use super::{
    end::Stop,
    filter::{filter, unmatched},
    recorder::Recorder,
};
use crate::{
    approval::{Approvals, Input, Taken, confirm},
    args::{self, Format},
    harness,
    host::{CANCEL_TIMEOUT, advised},
    output::{Output, Stdout},
    progress::{self, Progress, PutAside},
    signals,
    terminal::Terminal,
    watch,
};

type Events = LocalBoxStream<'static, anyhow::Result<AgentEvent>>;

/// A time beyond every run.
const FOREVER: Duration = Duration::from_secs(60 * 60 * 24 * 365);

/// The sinks of a run's events and result.
pub(super) struct Sinks {
    pub(super) recorder: Recorder,
    pub(super) output: Output,
    pub(super) stdout: Stdout,
    pub(super) progress: Box<dyn Progress>,
    pub(super) signals: signals::First,
    pub(super) warnings: Warnings,
    pub(super) approvals: Approvals,
    /// What is asked of the agent.
    pub(super) title: String,
    pub(super) terminal: Terminal,
}

/// The diagnostics of the harness, each shown once. An MCP server starts when it is first needed,
/// so they are read again.
pub(super) struct Warnings {
    /// The harness of this process, if the session is here.
    harness: Option<Harness>,
    shown: HashSet<String>,
}

/// A run in progress.
pub(super) struct Drive {
    session: Arc<dyn AnySession>,
    pub(super) run: Arc<dyn AnyRun>,
    pub(super) recorder: Rc<RefCell<Recorder>>,
    /// What was said before the turn was cut that the run resumes.
    pub(super) cut: Option<String>,
    pub(super) output: Output,
    pub(super) stdout: Stdout,
    pub(super) progress: PutAside,
    pub(super) signals: signals::First,
    warnings: Warnings,
    approvals: Approvals,
    title: String,
    terminal: Terminal,
    continued: signals::Continued,
    /// The text that waits for room on stdout.
    pub(super) queue: VecDeque<Bytes>,
    pub(super) stop: Option<Stop>,
    is_given_up: bool,
    events: Events,
    filter: EventFilter,
    /// The warning that is shown if no event matches the filter.
    unmatched: Option<String>,
    clock: Clocks,
}

struct Clocks {
    frames: Interval,
    timeout: Pin<Box<Sleep>>,
    /// The timeout of the run.
    limit: Duration,
    give_up: Pin<Box<Sleep>>,
    grace: Duration,
}

/// The key that shows the session full screen.
const WATCH: &str = "w";

/// What becomes of the loop.
#[derive(PartialEq)]
enum Flow {
    GoOn,
    /// The session is shown full screen.
    Watch,
    End,
}

/// What to do next.
enum Next {
    Event(Option<anyhow::Result<AgentEvent>>),
    Room(OwnedPermit<Bytes>),
    Frame,
    Input(Input),
    Continued,
    Stop(Stop),
    GiveUp,
}

impl Drive {
    pub(super) fn new(args: &args::Run, sinks: Sinks, session: Arc<dyn AnySession>, begun: Begun) -> Self {
        let Sinks { recorder, output, stdout, progress, signals, warnings, approvals, title, terminal } =
            sinks;
        let (mut progress, mut approvals) = (PutAside::new(progress), approvals);
        // What is streamed to the terminal would disturb the other screen.
        if matches!(args.output, Format::Text | Format::Json) && watch::is_possible(terminal) {
            approvals.listen(&mut progress, String::new());
        }
        let recorder = Rc::new(RefCell::new(recorder));
        let filter = filter(args, session.id().as_str());
        let keep = recorder.clone();
        let events = begun.events.map_err(advised);
        let seen = events.inspect_ok(move |event| keep.borrow_mut().handed(event)).boxed_local();
        let events = if args.gate_root_text { gated(seen) } else { seen };
        Self {
            session,
            run: begun.run,
            recorder,
            cut: None,
            output,
            stdout,
            progress,
            signals,
            warnings,
            approvals,
            title,
            terminal,
            continued: signals::Continued::new(),
            queue: output.begin().into_iter().collect(),
            stop: None,
            is_given_up: false,
            events,
            filter,
            unmatched: unmatched(args),
            clock: Clocks::new(args),
        }
    }

    /// Polls the run until it has ended, or the time is over. Then none of its agents runs, and
    /// all of its events were handed on.
    pub(super) async fn until_end(&mut self) {
        loop {
            let next = self.next().await;
            match self.apply(next).await {
                Flow::GoOn => {}
                Flow::Watch if self.watched().await => break,
                Flow::Watch => {}
                Flow::End => break,
            }
        }
        self.approvals.close(&mut self.progress);
        self.events = stream::empty().boxed_local();
        self.end_tasks().await;
        self.catch_up();
    }

    async fn apply(&mut self, next: Next) -> Flow {
        match next {
            Next::Event(Some(Ok(event))) => {
                self.event(&event);
                let granted = self.approvals.granted();
                confirm(&*self.session, granted, &mut self.progress).await;
            }
            Next::Event(Some(Err(error))) => {
                self.stop.get_or_insert(Stop::Lost(error));
                return Flow::End;
            }
            Next::Event(None) => return Flow::End,
            Next::GiveUp => {
                self.is_given_up = true;
                return Flow::End;
            }
            Next::Room(room) => _ = self.queue.pop_front().map(|piece| room.send(piece)),
            Next::Input(Input::Draft) if !self.approvals.is_open() => {
                let is_meant = self.approvals.pressed() == WATCH;
                return if is_meant { Flow::Watch } else { Flow::GoOn };
            }
            Next::Input(input) => {
                if let Taken::Answers(answers) = self.approvals.input(input, &mut self.progress) {
                    confirm(&*self.session, answers, &mut self.progress).await;
                }
            }
            Next::Continued => self.approvals.continued(&mut self.progress),
            Next::Frame if self.continued.is_before().await => {
                self.approvals.continued(&mut self.progress);
            }
            Next::Frame => self.progress.tick(SystemClock.now()),
            Next::Stop(stop) if self.stop.is_some() || stop.is_at_once() => {
                self.stop.get_or_insert(stop);
                return Flow::End;
            }
            Next::Stop(stop) => self.cancel(stop).await,
        }
        Flow::GoOn
    }

    /// Shows the session full screen until the person leaves; the run goes on meanwhile. Returns
    /// `true` if it has ended.
    async fn watched(&mut self) -> bool {
        self.approvals.rest();
        self.progress.put_aside();
        let size = progress::size();
        let screen = watch::within(self.session.clone(), self.title.clone(), self.terminal);
        let mut screen = Box::pin(screen);
        let is_over = loop {
            tokio::select! {
                biased;
                left = &mut screen => {
                    left.unwrap_or_else(|fault| self.progress.note(&format!("error: {:#}", fault.error)));
                    break false;
                }
                next = self.next() => if self.apply(next).await == Flow::End { break true },
            }
        };
        // The end stays on the screen, unless it was forced.
        if is_over && self.stop.is_none() {
            let _ = screen.as_mut().await;
        }
        drop(screen);
        self.progress.take_back(self.continued.discard() || size != progress::size());
        if !is_over && self.stop.is_none() {
            self.approvals.listen(&mut self.progress, String::new());
            self.approvals.ask(&mut self.progress);
        }
        is_over
    }

    /// Stops the remaining background tasks of this process: gently, unless the time is over.
    async fn end_tasks(&mut self) {
        if self.stop.as_ref().is_some_and(Stop::is_at_once) {
            self.cancel_run(CancelReason::Dropped).await;
        }
        let grace = if self.is_patient() { self.clock.grace } else { Duration::ZERO };
        tokio::select! {
            biased;
            () = self.session.release(grace) => return,
            signal = self.signals.next() => drop(self.stop.replace(Stop::Signal(signal))),
        }
        self.session.release(Duration::ZERO).await;
    }

    /// Asks all agents to stop. If the server can't be reached, the run continues, and its events
    /// show that.
    async fn cancel_run(&self, reason: CancelReason) {
        let _ = timeout(CANCEL_TIMEOUT, self.run.cancel(reason)).await;
    }

    /// Returns the figures of `--diagnostics`, if requested.
    pub(super) fn diagnostics(&self) -> Option<Diagnostics> {
        self.recorder.borrow().diagnostics.clone()
    }

    async fn next(&mut self) -> Next {
        let (is_stopping, is_aside) = (self.stop.is_some(), self.progress.is_aside());
        if let Some(error) = self.recorder.borrow_mut().take_trouble() {
            return Next::Stop(Stop::Record(error));
        }
        let Clocks { frames, timeout, give_up, .. } = &mut self.clock;
        tokio::select! {
            biased;
            signal = self.signals.next() => Next::Stop(Stop::Signal(signal)),
            () = timeout, if !is_stopping => Next::Stop(Stop::Timeout),
            () = give_up, if is_stopping => Next::GiveUp,
            () = self.continued.next(), if !is_aside => Next::Continued,
            input = self.approvals.next(), if !is_stopping && !is_aside => Next::Input(input),
            // Drawing would disturb a person who types where the terminal echoes it.
            _ = frames.tick(), if !is_aside && (is_stopping || self.approvals.is_drawn()) => Next::Frame,
            room = self.stdout.room(!self.queue.is_empty()) => {
                room.map_or_else(|error| Next::Stop(Stop::Stdout(error)), Next::Room)
            }
            // A cancelled run must be polled to its end, even without a reader.
            event = self.events.next(), if self.queue.is_empty() || is_stopping => Next::Event(event),
        }
    }

    fn event(&mut self, event: &AgentEvent) {
        if self.filter.matches(event) {
            self.unmatched = None;
            self.show(event);
        }
        // By then all tools are known.
        if let EventKind::ModelCallStart { .. } = event.kind {
            self.warnings.news().for_each(|warning| self.progress.note(&warning));
        }
        // Hidden agents count, too.
        self.approvals.event(event);
        if self.stop.is_none() && !self.progress.is_aside() {
            self.approvals.ask(&mut self.progress);
        }
    }

    /// Returns `true` if agents and tasks may take their time to end.
    pub(super) fn is_patient(&self) -> bool {
        !self.is_given_up && !self.stop.as_ref().is_some_and(Stop::is_at_once)
    }

    fn show(&mut self, event: &AgentEvent) {
        self.queue.extend(self.output.event(event));
        self.progress.event(event);
    }

    /// Asks all agents to stop, and gives them time.
    async fn cancel(&mut self, stop: Stop) {
        let agents = self.recorder.borrow().fleet.running().count();
        if matches!(stop, Stop::Signal(signals::Signal::Interrupt)) && io::stderr().is_terminal() {
            self.progress.below_echo();
        }
        self.approvals.close(&mut self.progress);
        self.progress.note(&stop.note(agents));
        self.cancel_run(stop.reason(self.clock.limit)).await;
        self.clock.give_up.as_mut().reset(Instant::now() + self.clock.grace);
        self.stop = Some(stop);
    }

    /// Applies the events after the run, or those of a dropped run.
    fn catch_up(&mut self) {
        let last = self.recorder.borrow().fleet.seq;
        for event in self.session.at_hand(last) {
            self.recorder.borrow_mut().unread(&event);
            self.event(&event);
        }
        self.progress.finish(SystemClock.now());
        self.unmatched.take().iter().for_each(|note| self.progress.note(note));
    }
}

impl Warnings {
    /// Creates the warnings, without those that were found before the run.
    pub(super) fn new(harness: Option<Harness>, found: Vec<String>) -> Self {
        Self { harness, shown: found.into_iter().collect() }
    }

    fn news(&mut self) -> impl Iterator<Item = String> {
        let warnings = self.harness.iter().flat_map(harness::found);
        warnings.filter(|warning| self.shown.insert(warning.clone()))
    }
}

/// Filters out the root's text in turns that call tools. An error, which is the last item, waits
/// for what is held back.
fn gated(events: Events) -> Events {
    let error = Rc::new(Cell::new(None));
    let aside = error.clone();
    let fine = events.scan((), move |(), event| ready(event.map_err(|error| aside.set(Some(error))).ok()));
    let last = stream::once(async move { error.take().map(Err) }).filter_map(ready);
    fine.gate_root_text().map(Ok).chain(last).boxed_local()
}

impl Clocks {
    fn new(args: &args::Run) -> Self {
        let limit = args.timeout.unwrap_or(FOREVER).min(FOREVER);
        Self {
            frames: progress::frames(),
            timeout: Box::pin(sleep(limit)),
            limit,
            give_up: Box::pin(sleep(FOREVER)),
            grace: args.grace.min(FOREVER),
        }
    }
}
