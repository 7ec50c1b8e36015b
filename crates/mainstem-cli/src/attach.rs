//! `mainstem attach`: follows a session that another process runs.

use std::{sync::Arc, time::Duration};

use anyhow::anyhow;
use futures_util::TryStreamExt;
use mainstem::{
    api::{AnySession, EventQuery, Events, SessionState},
    message::SessionId,
};
use mainstem_event::{AgentEvent, Clock, SystemClock};
use tokio::time::{Instant, Interval, interval_at};

use crate::{
    args::{Attach, Format},
    exit::{Exit, Fault, OrExit},
    host::{self, Advise},
    print::print_reply,
    progress::{self, Progress},
    replies::Replies,
    signals::{self, Continued},
    store::Access,
    terminal::Terminal,
};

/// How often a session without events is checked for the end of its process.
const CHECK_EVERY: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &Attach, terminal: Terminal) -> Result<Exit, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().or_exit(Exit::Failed)?;
    let mut signals = signals::watch().or_exit(Exit::Failed)?;
    runtime.block_on(async {
        let mut source = Source::open(args).await?;
        let mut shown = SessionView::new(args, terminal);
        let (mut frames, mut continued) = (progress::frames(), Continued::new());
        loop {
            if args.once && source.is_enough() {
                shown.progress.finish(SystemClock.now());
                return Ok(Exit::Reply);
            }
            tokio::select! {
                biased;
                signal = signals.next() => {
                    shown.progress.finish(SystemClock.now());
                    return Ok(signal.exit());
                }
                () = continued.next() => shown.progress.continued(),
                _ = frames.tick() => match continued.is_before().await {
                    true => shown.progress.continued(),
                    false => shown.progress.tick(SystemClock.now()),
                },
                next = source.next() => match next.or_exit(Exit::Failed)? {
                    Next::Event(event) => shown.event(&event)?,
                    Next::Cut if args.once => return Err(cut(&args.session)).or_exit(Exit::Failed),
                    Next::Cut => shown.progress.note(&format!("warning: {}", cut(&args.session))),
                    Next::Over => return Ok(Exit::Reply),
                },
            }
        }
    })
}

/// Returns that the process of a session ended before its run, and what to do.
pub(crate) fn cut(session: &SessionId) -> anyhow::Error {
    anyhow!(
        "the process of session {session:?} ended before its run; `mainstem run --session {session} --resume` resumes it"
    )
}

/// What is shown of the session.
struct SessionView<'a> {
    args: &'a Attach,
    terminal: Terminal,
    progress: Box<dyn Progress>,
    replies: Replies,
}

impl<'a> SessionView<'a> {
    fn new(args: &'a Attach, terminal: Terminal) -> Self {
        let progress =
            progress::on_stderr(terminal, args.progress.mode(), Format::Text, args.session.as_str());
        Self { args, terminal, progress, replies: Replies::default() }
    }

    fn event(&mut self, event: &AgentEvent) -> Result<(), Fault> {
        self.progress.event(event);
        progress::damage(event).iter().for_each(|damage| self.progress.note(damage));
        let Some(reply) = self.replies.event(event) else { return Ok(()) };
        // The next run is shown below the reply.
        self.progress.finish(SystemClock.now());
        self.progress =
            progress::again_on_stderr(self.terminal, self.args.progress.mode(), self.args.session.as_str());
        if reply.is_empty() { Ok(()) } else { print_reply(&reply, self.terminal) }
    }
}

/// What happens next in a session.
enum Next {
    Event(Box<AgentEvent>),
    /// The process of the active run has ended before the run.
    Cut,
    /// There are no further events.
    Over,
}

/// The events of a session, and how far they are read with `--once`.
struct Source {
    session: Arc<dyn AnySession>,
    events: Events,
    /// The number of the last event at the beginning.
    until: u64,
    /// Whether a run was active at the beginning and has not ended.
    is_running: bool,
    seen: u64,
    /// When to check again that the active run has a process.
    check: Interval,
}

impl Source {
    /// # Errors
    /// The session does not exist, or the server can't be reached.
    async fn open(args: &Attach) -> Result<Self, Fault> {
        let session = host::open(&args.at, Access::Read, args.journal.as_ref())?.session(&args.session);
        let view = session.view().await.advise().or_exit(Exit::Failed)?;
        let first = match args.from {
            Some(from) => from,
            None => {
                session.runs().await.advise().or_exit(Exit::Failed)?.last().map_or(1, |run| run.first_seq)
            }
        };
        let seen = first.saturating_sub(1);
        let events = session.events(EventQuery::after(seen));
        let is_running = matches!(view.state, SessionState::Running | SessionState::Unfinished);
        let check = interval_at(Instant::now() + CHECK_EVERY, CHECK_EVERY);
        Ok(Self { session, events, until: view.last_seq, is_running, seen, check })
    }

    /// Returns `true` if all earlier events were read and the active run has ended.
    fn is_enough(&self) -> bool {
        self.seen >= self.until && !self.is_running
    }

    /// Returns what happens next. Dropping the future loses no event.
    async fn next(&mut self) -> anyhow::Result<Next> {
        loop {
            tokio::select! {
                biased;
                event = self.events.try_next() => {
                    let Some(event) = event.advise()? else { return Ok(Next::Over) };
                    self.seen = event.seq;
                    self.is_running &= !(event.is_run_end() && event.seq >= self.until);
                    return Ok(Next::Event(Box::new(event)));
                }
                _ = self.check.tick(), if self.is_running => {
                    // Only events that were written before this check are read before the end is
                    // reported.
                    let view = match self.session.view().await {
                        Ok(view) => view,
                        // The events say whether the server is back.
                        Err(error) if error.is_retryable() => continue,
                        Err(error) => return Err(host::advised(error)),
                    };
                    if view.state == SessionState::Unfinished && view.last_seq <= self.seen {
                        self.is_running = false;
                        return Ok(Next::Cut);
                    }
                }
            }
        }
    }
}
