//! `mainstem watch`: a session or a recorded file, full screen.

mod film;
mod screen;
mod stall;
mod state;
#[cfg(test)]
mod tests;
mod transcript;
mod view;

use std::{io, sync::Arc, time::Duration};

use anyhow::{anyhow, ensure};
use crossterm::event::{self as keyboard, Event, KeyEventKind};
use futures_util::{FutureExt, StreamExt, future::LocalBoxFuture, stream::FuturesUnordered};
use mainstem::{
    api::{AnySession, EventQuery},
    event::SendMode,
    message::SessionId,
};
use mainstem_event::AgentEvent;
use tokio::time::{Instant, MissedTickBehavior, interval};

pub(crate) use self::screen::restore;
use self::{
    screen::Screen,
    stall::stall,
    state::{Action, State},
};
#[cfg(feature = "page")]
use crate::web;
use crate::{
    args::Watch,
    exit::{Exit, Fault, OrExit, shut_down},
    host,
    progress::glyphs::Glyphs,
    replay::source::{Source, file, is_record},
    signals::{Continued, Signals},
    store::Access,
    terminal::Terminal,
};

/// The time between two frames, when something has changed.
const FRAME: Duration = Duration::from_millis(50);

/// How often the session's process or server is checked.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// The most events that are applied between two frames.
const AT_ONCE: usize = 20_000;

pub(crate) fn run(args: &Watch, terminal: Terminal) -> Result<Exit, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().or_exit(Exit::Failed)?;
    let exit = runtime.block_on(async {
        #[cfg(feature = "page")]
        if args.web {
            return in_browser(args, terminal).await;
        }
        let check = || {
            ensure!(
                is_possible(terminal),
                "watch needs a terminal; `mainstem attach` and `replay` print to any output"
            );
            Ok(())
        };
        check().or_exit(Exit::Usage)?;
        let watched = Watched::open(args).await?;
        watch(watched, terminal).await
    });
    shut_down(runtime);
    exit
}

/// Shows a session that this process runs, or has begun on a server, until the person leaves.
pub(crate) async fn within(
    session: Arc<dyn AnySession>,
    title: String,
    terminal: Terminal,
) -> Result<(), Fault> {
    let events = session.events(EventQuery::after(0)).map(|event| event.map_err(host::advised)).boxed_local();
    let watched = Watched { title, events, session: Some(session), fixed: None };
    watch(watched, terminal).await.map(drop)
}

/// Returns `true` if the terminal has a screen for it.
pub(crate) fn is_possible(terminal: Terminal) -> bool {
    terminal.stdin && terminal.stdout && !terminal.is_dumb
}

/// What is watched.
struct Watched {
    title: String,
    events: Source,
    /// The session, if it has one.
    session: Option<Arc<dyn AnySession>>,
    /// Why nothing can be steered, if so.
    fixed: Option<&'static str>,
}

impl Watched {
    async fn open(args: &Watch) -> Result<Self, Fault> {
        if let Some(path) = args.what.as_deref().filter(|path| is_record(path))
            && let Some(events) = file(path).or_exit(Exit::Usage)?
        {
            let fixed = Some("this is a record, not a session");
            return Ok(Self { title: path.to_owned(), events, session: None, fixed });
        }
        let id = match &args.what {
            Some(id) => SessionId::parse_scoped(id).map_err(|_| unknown(id)).or_exit(Exit::Usage)?,
            None => host::latest(args.at.server.as_deref(), args.journal.as_ref()).await?,
        };
        let session = host::open(&args.at, Access::Read, args.journal.as_ref())?.session(&id);
        let known = session.view().await.map_err(|error| {
            match args.what.as_deref().filter(|_| args.at.server.is_none()) {
                Some(what) if error.problem().is_some() => unknown(what),
                _ => host::advised(error),
            }
        });
        known.or_exit(Exit::Usage)?;
        let events =
            session.events(EventQuery::after(0)).map(|event| event.map_err(host::advised)).boxed_local();
        let fixed = args
            .at
            .server
            .is_none()
            .then_some("another process runs this session; one on a server can be steered (--server)");
        Ok(Self { title: id.to_string(), events, session: Some(session), fixed })
    }
}

/// Shows it in a browser.
#[cfg(feature = "page")]
async fn in_browser(args: &Watch, terminal: Terminal) -> Result<Exit, Fault> {
    let watched = Watched::open(args).await?;
    let session = match (watched.session, &args.at.server) {
        (None, _) => return web::open_record(&watched.title, watched.events, terminal).await,
        (Some(session), None) => {
            return web::open_record(&watched.title, web::stored(session), terminal).await;
        }
        (Some(session), Some(_)) => session,
    };
    let server = host::server(args.at.server.as_deref()).or_exit(Exit::Usage)?;
    let address = server.as_ref().map(|server| server.address().trim_end_matches("/v1")).unwrap_or_default();
    web::open(&format!("{address}/#{}", session.id()), terminal)
}

fn unknown(what: &str) -> anyhow::Error {
    anyhow!("there is no file {what:?}, and no session of that name; `mainstem sessions list` lists sessions")
}

/// Shows it until the person leaves.
async fn watch(watched: Watched, terminal: Terminal) -> Result<Exit, Fault> {
    let Watched { title, mut events, session, fixed } = watched;
    let glyphs = if terminal.ascii { Glyphs::ASCII } else { Glyphs::UNICODE };
    let mut signals = Signals::new().or_exit(Exit::Failed)?;
    let mut continued = Continued::with_restore(screen::leave);
    let mut frames = interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut viewer = Viewer {
        state: State::new(&title, glyphs, fixed),
        screen: Screen::open(terminal.color).or_exit(Exit::Failed)?,
        session,
        steering: FuturesUnordered::new(),
        checking: FuturesUnordered::new(),
        is_changed: true,
    };
    let mut checks = interval(CHECK_EVERY);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut is_over, mut last, mut read) = (false, Instant::now(), 0);
    loop {
        tokio::select! {
            biased;
            signal = signals.next() => return Ok(signal.exit()),
            () = continued.next() => {
                viewer.screen.reopen().or_exit(Exit::Failed)?;
                viewer.is_changed = true;
            }
            _ = frames.tick() => {
                if viewer.has_left().or_exit(Exit::Failed)? {
                    return Ok(Exit::Reply);
                }
                viewer.frame(last.elapsed()).or_exit(Exit::Failed)?;
                (last, read) = (Instant::now(), 0);
            }
            Some(note) = viewer.steering.next(), if !viewer.steering.is_empty() => {
                (viewer.state.note, viewer.is_changed) = (note, true);
            }
            _ = checks.tick(), if !is_over && viewer.checking.is_empty() => viewer.check(),
            Some(stall) = viewer.checking.next(), if !viewer.checking.is_empty() => {
                viewer.is_changed |= viewer.state.stall != stall;
                viewer.state.stall = stall;
            }
            event = events.next(), if !is_over && read < AT_ONCE => {
                (read, viewer.is_changed) = (read + 1, true);
                is_over = show(&mut viewer.state, event);
                if is_over {
                    viewer.state.stall = None;
                    viewer.state.end(&title).or_exit(Exit::Usage)?;
                }
            }
        }
    }
}

/// The screen of a session.
struct Viewer {
    state: State,
    screen: Screen,
    session: Option<Arc<dyn AnySession>>,
    /// Requests to the session; a server may respond slowly.
    steering: FuturesUnordered<LocalBoxFuture<'static, String>>,
    /// The check under way, if there is one.
    checking: FuturesUnordered<LocalBoxFuture<'static, Option<String>>>,
    is_changed: bool,
}

impl Viewer {
    /// Does what keys ask for; returns `true` if the person leaves.
    fn has_left(&mut self) -> io::Result<bool> {
        while keyboard::poll(Duration::ZERO)? {
            self.is_changed = true;
            let action = match keyboard::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    self.state.key(key, self.screen.page())
                }
                Event::Paste(text) => self.state.paste(&text),
                _ => None,
            };
            match action {
                Some(Action::Quit) => return Ok(true),
                Some(Action::Suspend) => self.screen.suspend()?,
                Some(action) => {
                    let session = self.session.clone();
                    self.steering.extend(session.map(|session| steer(session, action).boxed_local()));
                }
                None => {}
            }
        }
        Ok(false)
    }

    /// Begins to check the process or the server of the session, if it has one.
    fn check(&mut self) {
        let seen = self.state.film.last_seq();
        self.checking.extend(self.session.clone().map(|session| stall(session, seen).boxed_local()));
    }

    /// Lets time pass, and draws if something has changed.
    fn frame(&mut self, time: Duration) -> io::Result<()> {
        self.is_changed |= self.state.is_playing;
        self.state.pass(time);
        if std::mem::take(&mut self.state.rings) {
            self.screen.ring()?;
        }
        if std::mem::take(&mut self.is_changed) { self.screen.draw(&mut self.state) } else { Ok(()) }
    }
}

/// Adds what was read; returns `true` at the end.
fn show(state: &mut State, event: Option<anyhow::Result<AgentEvent>>) -> bool {
    match event {
        Some(Ok(event)) => {
            state.event(event);
            false
        }
        Some(Err(error)) => {
            state.note = format!("{error:#}");
            true
        }
        None => true,
    }
}

/// Does what a person asks for; returns what to say.
async fn steer(session: Arc<dyn AnySession>, action: Action) -> String {
    let done = match &action {
        Action::Send(key, text) => session.send(key, text, SendMode::Steer).await.map(|()| "sent".to_owned()),
        Action::Cancel(key) => session.cancel_agent(key).await.map(|was_running| match was_running {
            true => "it is asked to stop".to_owned(),
            false => "it does not run".to_owned(),
        }),
        Action::Confirm(id, decision) => {
            session.confirm(id, decision.clone()).await.map(|()| "answered".to_owned())
        }
        Action::Quit | Action::Suspend => Ok(String::new()),
    };
    done.unwrap_or_else(|error| format!("error: {:#}", host::advised(error)))
}
