//! Ctrl-C, SIGTERM and SIGHUP, on a separate thread; the first is reported, the second exits
//! immediately.

use std::{
    future::pending,
    io::{self, Write},
    process,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use mainstem_event::CancelReason;
use tokio::{
    runtime::{Builder, Runtime},
    sync::oneshot,
    task::yield_now,
};

use crate::{approval, exit::Exit, watch as screen};

/// A request to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Interrupt,
    #[cfg_attr(not(unix), expect(dead_code, reason = "there is no such signal"))]
    Terminate,
    #[cfg_attr(not(unix), expect(dead_code, reason = "there is no such signal"))]
    Hangup,
}

impl Signal {
    pub(crate) fn exit(self) -> Exit {
        match self {
            Self::Interrupt => Exit::Interrupted,
            Self::Terminate => Exit::Terminated,
            Self::Hangup => Exit::HungUp,
        }
    }

    /// Returns the cancel reason of this signal.
    pub(crate) fn reason(self) -> CancelReason {
        match self {
            Self::Interrupt => CancelReason::user("Ctrl-C"),
            Self::Terminate => CancelReason::Signal { name: "SIGTERM".into() },
            Self::Hangup => CancelReason::Signal { name: "SIGHUP".into() },
        }
    }
}

/// Starts to watch for signals; reports the first, and exits at the second.
///
/// # Errors
/// The system refuses a thread, or handlers.
pub(crate) fn watch() -> io::Result<First> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut signals = {
        let _in_runtime = runtime.enter();
        Signals::new()?
    };
    let (first, receiver) = oneshot::channel();
    let wait = move |runtime: Runtime| {
        runtime.block_on(async {
            let sent = first.send(signals.next().await);
            // Without a receiver, the first signal counts as the second.
            let last = match sent {
                Ok(()) => {
                    let second = signals.next().await;
                    say_aborted();
                    second
                }
                Err(signal) => signal,
            };
            approval::restore();
            screen::restore();
            process::exit(last.exit() as i32);
        });
    };
    thread::Builder::new().name("signals".to_owned()).spawn(move || wait(runtime))?;
    Ok(First(Some(receiver)))
}

/// Writes that the run is aborted; does not wait for a terminal or pipe that takes no more.
fn say_aborted() {
    let (done, written) = mpsc::channel();
    let write = move || {
        let _ = writeln!(io::stderr(), "\naborted by a second signal, without waiting for the agents");
        let _ = done.send(());
    };
    if thread::Builder::new().spawn(write).is_ok() {
        let _ = written.recv_timeout(Duration::from_millis(100));
    }
}

/// The first signal, reported once.
pub(crate) struct First(Option<oneshot::Receiver<Signal>>);

impl First {
    /// Waits for the signal; is pending after it was reported.
    pub(crate) async fn next(&mut self) -> Signal {
        if let Some(first) = &mut self.0 {
            let signal = first.await;
            self.0 = None;
            if let Ok(signal) = signal {
                return signal;
            }
        }
        pending().await
    }
}

/// A stream of continuations: `fg` after Ctrl-Z. The terminal gets its mode back before the process
/// stops.
pub(crate) struct Continued {
    /// SIGTSTP and SIGCONT; `None` if the system refuses a handler.
    #[cfg(unix)]
    signals: Option<(tokio::signal::unix::Signal, tokio::signal::unix::Signal)>,
    /// Gives the terminal its mode back.
    restore: fn(),
    /// When the last frame was due.
    frame: Instant,
}

/// The shortest time that a process is stopped for; frames are more frequent.
const STOP: Duration = Duration::from_millis(250);

impl Continued {
    /// Starts to watch, within a runtime.
    pub(crate) fn new() -> Self {
        Self::with_restore(approval::restore)
    }

    /// Starts to watch, within a runtime; before a stop, this gives the terminal its mode back.
    pub(crate) fn with_restore(restore: fn()) -> Self {
        Self {
            restore,
            #[cfg(unix)]
            signals: {
                use rustix::process::Signal;
                use tokio::signal::unix::{SignalKind, signal};
                let watch = |kind: Signal| signal(SignalKind::from_raw(kind.as_raw())).ok();
                watch(Signal::TSTP).zip(watch(Signal::CONT))
            },
            frame: Instant::now(),
        }
    }

    /// Waits until the process is continued.
    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        {
            use rustix::process::{Signal, getpid, kill_process};
            let restore = self.restore;
            let stop = || {
                restore();
                let _ = kill_process(getpid(), Signal::STOP);
            };
            self.stopped(stop).await;
        }
        #[cfg(not(unix))]
        pending().await
    }

    /// Waits until the process is continued, while the line editor has the terminal.
    pub(crate) async fn next_at_prompt(&mut self) {
        #[cfg(unix)]
        self.stopped(approval::stop_at_prompt).await;
        #[cfg(not(unix))]
        pending().await
    }

    /// Discards the signals that have come since the last wait, because something else has handled
    /// them. Returns `true` if the process was continued.
    pub(crate) fn discard(&mut self) -> bool {
        #[cfg(unix)]
        if let Some((stops, continues)) = &mut self.signals {
            let _ = stops.recv().now_or_never();
            return continues.recv().now_or_never().is_some();
        }
        false
    }

    /// Stops the process with `stop` when it is asked to, and waits until it is continued.
    #[cfg(unix)]
    async fn stopped(&mut self, stop: impl Fn()) {
        if let Some((stops, continues)) = &mut self.signals {
            loop {
                tokio::select! {
                    biased;
                    Some(()) = stops.recv() => stop(),
                    Some(()) = continues.recv() => return,
                    else => break,
                }
            }
        }
        pending().await
    }

    /// Returns `true` if the process was continued since the last frame: a timer may be noticed
    /// before the signal.
    pub(crate) async fn is_before(&mut self) -> bool {
        if std::mem::replace(&mut self.frame, Instant::now()).elapsed() < STOP {
            return false;
        }
        yield_now().await;
        self.next().now_or_never().is_some()
    }
}

/// A stream of all signals.
#[cfg(unix)]
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    /// `None` under `nohup`, which ignores SIGHUP.
    hangup: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        // A write beyond `ulimit -f` fails then, as on a full disk, and does not end the process.
        drop(signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?);
        let hangup = (!ignores_hangups()).then(|| signal(SignalKind::hangup())).transpose()?;
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(Self { interrupt, terminate, hangup })
    }

    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
            () = Self::received(self.hangup.as_mut()) => Signal::Hangup,
        }
    }

    async fn received(signal: Option<&mut tokio::signal::unix::Signal>) {
        match signal {
            Some(signal) => drop(signal.recv().await),
            None => pending().await,
        }
    }
}

/// Returns `true` if the process was started with SIGHUP ignored; known on Linux only.
#[cfg(unix)]
fn ignores_hangups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The lowest bit is for signal 1.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[cfg(not(unix))]
pub(crate) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    pub(crate) async fn next(&mut self) -> Signal {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Signal::Interrupt,
            Err(_) => pending().await,
        }
    }
}
