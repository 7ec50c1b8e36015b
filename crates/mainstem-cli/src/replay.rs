//! `mainstem replay`: shows recorded events, in the time that they took or faster.

pub(crate) mod source;

use std::time::Duration;

use anyhow::anyhow;
use futures_util::TryStreamExt;
use mainstem_event::Timestamp;
use tokio::time::{Instant, Interval, sleep_until};

use self::source::{Source, open};
use crate::{
    args::{Format, Replay},
    exit::{Exit, Fault, OrExit},
    print::print_reply,
    progress::{self, Progress},
    replies::Replies,
    signals,
    terminal::Terminal,
};

/// The longest pause.
const LONGEST: Duration = Duration::from_secs(3);

pub(crate) fn run(args: &Replay, terminal: Terminal) -> Result<Exit, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().or_exit(Exit::Failed)?;
    let mut signals = signals::watch().or_exit(Exit::Failed)?;
    runtime.block_on(async {
        let source = open(args).await?;
        let mut player = Player {
            args,
            terminal,
            progress: progress::on_stderr(terminal, args.progress.mode(), Format::Text, &args.what),
            pace: Pace::new(args.speed),
            frames: progress::frames(),
            replies: Replies::default(),
        };
        let shown = tokio::select! {
            biased;
            signal = signals.next() => Err(signal),
            shown = player.play(source) => Ok(shown),
        };
        player.progress.finish(player.pace.now());
        match shown {
            Err(signal) => Ok(signal.exit()),
            Ok(shown) => shown.map(|()| Exit::Reply),
        }
    })
}

struct Player<'a> {
    args: &'a Replay,
    terminal: Terminal,
    /// The reply of the current run.
    progress: Box<dyn Progress>,
    pace: Pace,
    frames: Interval,
    replies: Replies,
}

impl Player<'_> {
    async fn play(&mut self, mut source: Source) -> Result<(), Fault> {
        let mut is_empty = true;
        while let Some(event) = source.try_next().await.or_exit(Exit::Failed)? {
            is_empty = false;
            self.until(event.at).await;
            self.progress.event(&event);
            progress::damage(&event).iter().for_each(|damage| self.progress.note(damage));
            if let Some(reply) = self.replies.event(&event) {
                self.progress.finish(self.pace.now());
                // Later frames are drawn below the reply.
                self.progress =
                    progress::again_on_stderr(self.terminal, self.args.progress.mode(), &self.args.what);
                if !reply.is_empty() {
                    print_reply(&reply, self.terminal)?;
                }
            }
        }
        if is_empty {
            return Err(anyhow!("{} has no events", self.args.what)).or_exit(Exit::Usage);
        }
        if self.replies.is_open() {
            self.progress.note("the record ends before its run does");
        }
        Ok(())
    }

    async fn until(&mut self, at: Timestamp) {
        let Some(due) = self.pace.due(at) else {
            // A signal is noticed without a pause, too.
            return tokio::task::yield_now().await;
        };
        loop {
            tokio::select! {
                biased;
                () = sleep_until(due) => return,
                _ = self.frames.tick() => self.progress.tick(self.pace.now()),
            }
        }
    }
}

/// The clock of a replay: converts between recorded and current time.
struct Pace {
    speed: f64,
    /// When the latest event is due, and when it happened.
    last: Option<(Instant, Timestamp)>,
}

impl Pace {
    fn new(speed: f64) -> Self {
        Self { speed, last: None }
    }

    /// Returns when an event of that time is due; `None` at once.
    fn due(&mut self, at: Timestamp) -> Option<Instant> {
        let (due, before) = self.last.unwrap_or_else(|| (Instant::now(), at));
        let passed = Duration::from_micros(at.as_micros().saturating_sub(before.as_micros()));
        let pause =
            Duration::try_from_secs_f64(passed.as_secs_f64() / self.speed).unwrap_or(LONGEST).min(LONGEST);
        self.last = Some((due + pause, at.max(before)));
        (!pause.is_zero()).then_some(due + pause)
    }

    /// Returns the recorded time of the current moment.
    fn now(&self) -> Timestamp {
        let Some((due, at)) = self.last else { return Timestamp::from_micros(0) };
        let ahead = due.saturating_duration_since(Instant::now());
        let ahead = if ahead.is_zero() { 0.0 } else { ahead.as_micros() as f64 * self.speed };
        Timestamp::from_micros(at.as_micros().saturating_sub(ahead as u64))
    }
}
