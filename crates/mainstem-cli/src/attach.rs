//! `mainstem attach`: follows a session that another process runs.

use std::{collections::VecDeque, time::Duration};

use anyhow::{Context, anyhow};
use mainstem::journal::Journal;
use mainstem_event::{AgentEvent, Clock, SystemClock};
use serde_json::Value;
use tokio::time::sleep;

use crate::{
    agents::print,
    args::{Attach, Format},
    exit::{Exit, Fault, OrExit},
    progress::{self, Progress},
    remote::{self, Remote, escape},
    replies::Replies,
    signals,
    store::{self, Pages},
    terminal::Terminal,
};

/// How often the journal is looked at for what another process has written.
const LOOK: Duration = Duration::from_millis(50);

/// After so many of them in vain it is asked whether anybody writes at all.
const LOOKS: u32 = 20;

pub(crate) fn run(args: &Attach, terminal: Terminal) -> Result<Exit, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().or_exit(Exit::Failed)?;
    let mut signals = signals::watch().or_exit(Exit::Failed)?;
    runtime.block_on(async {
        let mut source = Source::open(args).await.or_exit(Exit::Usage)?;
        let mut shown = Shown::new(args, terminal);
        let mut frames = progress::frames();
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
                _ = frames.tick() => shown.progress.tick(SystemClock.now()),
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

fn cut(session: &str) -> anyhow::Error {
    anyhow!(
        "the process that worked in session {session:?} has ended before its run; `mainstem run --session {session} --resume` takes that up"
    )
}

/// What is seen of it.
struct Shown<'a> {
    args: &'a Attach,
    terminal: Terminal,
    progress: Box<dyn Progress>,
    replies: Replies,
}

impl<'a> Shown<'a> {
    fn new(args: &'a Attach, terminal: Terminal) -> Self {
        let progress = progress::on_stderr(terminal, args.progress, Format::Text, &args.session);
        Self { args, terminal, progress, replies: Replies::default() }
    }

    fn event(&mut self, event: &AgentEvent) -> Result<(), Fault> {
        self.progress.event(event);
        progress::damage(event).iter().for_each(|damage| self.progress.note(damage));
        let Some(reply) = self.replies.event(event) else { return Ok(()) };
        // The next run is drawn below the reply.
        self.progress.finish(SystemClock.now());
        self.progress = progress::again_on_stderr(self.terminal, self.args.progress, &self.args.session);
        if reply.is_empty() { Ok(()) } else { print(&(reply + "\n")) }
    }
}

/// What comes of waiting.
enum Next {
    Event(AgentEvent),
    /// The active run was cut off: its process has ended.
    Cut,
    /// There will be no more.
    Over,
}

/// Where the events come from, and how far they are wanted with `--once`.
struct Source {
    from: From,
    /// All there was in the beginning.
    until: u64,
    /// Whether a run was active then and has not ended yet.
    is_at_work: bool,
    seen: u64,
}

enum From {
    Server(remote::Events),
    /// With how often it was looked at in vain.
    Journal {
        pages: Pages,
        page: VecDeque<AgentEvent>,
        looks: u32,
    },
}

impl Source {
    /// # Errors
    /// There is no such session, or no such server.
    async fn open(args: &Attach) -> anyhow::Result<Self> {
        match Remote::of(&args.at)? {
            Some(remote) => Self::on_server(&remote, args).await,
            None => Self::in_journal(args).await,
        }
    }

    async fn on_server(remote: &Remote, args: &Attach) -> anyhow::Result<Self> {
        let path = format!("/sessions/{}", escape(&args.session));
        let session = remote.get(&path).await?;
        let runs = remote.get(&format!("{path}/runs")).await?;
        let first = match args.from {
            Some(from) => from,
            None => runs["items"].as_array().and_then(|runs| runs.last()?["first_seq"].as_u64()).unwrap_or(1),
        };
        let seen = first.saturating_sub(1);
        let from = From::Server(remote.events(format!("{path}/events"), seen));
        let until = session["last_seq"].as_u64().unwrap_or(0);
        Ok(Self { from, until, is_at_work: session["active_run"] != Value::Null, seen })
    }

    async fn in_journal(args: &Attach) -> anyhow::Result<Self> {
        let journal = store::open(args.journal.as_deref())?;
        let id = (&*args.session).into();
        let unknown = || {
            anyhow!("there is no session {:?}; `mainstem sessions list` says which there are", args.session)
        };
        let session = journal.session(&id).await?.ok_or_else(unknown)?;
        let latest = match &session.unfinished {
            Some(run) => journal.run(run).await?.map_or(1, |place| place.first),
            None => 1,
        };
        let first = args.from.unwrap_or(latest);
        let pages =
            Pages::of(journal, &args.session).await?.with_context(|| unknown().to_string())?.from(first);
        let from = From::Journal { pages, page: VecDeque::new(), looks: 0 };
        let (until, is_at_work) = (session.last, session.unfinished.is_some());
        Ok(Self { from, until, is_at_work, seen: first.saturating_sub(1) })
    }

    /// Returns `true` if all earlier events were seen and the active run has ended.
    fn is_enough(&self) -> bool {
        self.seen >= self.until && !self.is_at_work
    }

    /// What comes next; nothing is lost when it is dropped while it waits.
    async fn next(&mut self) -> anyhow::Result<Next> {
        let event = match &mut self.from {
            From::Server(events) => events.next().await?,
            From::Journal { pages, page, looks } => {
                while page.is_empty() {
                    // Asked before the look, so that what was written last is seen first.
                    let is_cut = self.is_at_work && *looks == LOOKS && !pages.is_written().await;
                    page.extend(pages.next().await?);
                    if page.is_empty() && is_cut {
                        self.is_at_work = false;
                        return Ok(Next::Cut);
                    }
                    if page.is_empty() {
                        *looks = *looks % LOOKS + 1;
                        sleep(LOOK).await;
                    }
                }
                page.pop_front()
            }
        };
        let Some(event) = event else { return Ok(Next::Over) };
        self.seen = event.seq;
        self.is_at_work &= !(event.ends_run() && event.seq >= self.until);
        Ok(Next::Event(event))
    }
}
