//! `mainstem sessions live`: what the active sessions of a server do.

use std::{collections::BTreeMap, time::Duration};

use futures_util::TryStreamExt;
use mainstem::{
    api::{Error, LiveFrame, LiveQuery},
    client::{LiveFrames, Server},
    event::{Clock, FleetState, SystemClock, Timestamp, fleet::Phase},
    message::{SessionId, TenantName},
};
use serde_json::json;
use tokio::time::sleep;

use crate::{
    args::Form,
    exit::{Exit, Fault, OrExit},
    host::Advise,
    print::{print, print_json},
    progress,
    terminal::Terminal,
};

/// How long to wait before a server is asked again that was lost.
const AGAIN: Duration = Duration::from_secs(1);

/// Prints what active sessions do, also after the connection was lost; ends with the refusal of a
/// server.
pub(super) async fn follow(
    server: &Server,
    all: bool,
    output: Form,
    terminal: Terminal,
) -> Result<(), Fault> {
    let query = LiveQuery { all };
    let mut frames = server.live(query).await.advise().or_exit(Exit::Failed)?;
    let mut sessions = Sessions::default();
    loop {
        let error = print_all(&mut frames, &mut sessions, output).await?;
        progress::say(&format!("{error}; connecting again"), terminal);
        frames = again(server, query).await?;
        sessions.begin_again();
        progress::say("connected again", terminal);
    }
}

/// Connects to a server that was lost.
async fn again(server: &Server, query: LiveQuery) -> Result<LiveFrames, Fault> {
    loop {
        sleep(AGAIN).await;
        match server.live(query).await {
            Err(error) if error.is_retryable() => {}
            connected => return connected.advise().or_exit(Exit::Failed),
        }
    }
}

/// Prints frames until there are no more; returns why.
async fn print_all(frames: &mut LiveFrames, sessions: &mut Sessions, output: Form) -> Result<Error, Fault> {
    loop {
        let frame = match frames.try_next().await {
            Ok(Some(frame)) => frame,
            Ok(None) => return Ok(Error::unreachable("the server", "the stream has ended")),
            Err(error) => return Ok(error),
        };
        match output {
            Form::Json => print_json(&json!(frame).to_string())?,
            Form::Text => {
                let lines: String = sessions.apply(frame).into_iter().chain(sessions.missing()).collect();
                print(&lines)?;
            }
        }
    }
}

type Key = (Option<TenantName>, SessionId);

/// The sessions that are active.
#[derive(Default)]
struct Sessions {
    /// Each with the last line about it.
    active: BTreeMap<Key, (FleetState, String)>,
    /// Those that were active before the connection was lost, until the server has named all that
    /// are active now.
    before: BTreeMap<Key, (FleetState, String)>,
    /// How many sessions the server names, by its last summary; unknown before.
    shown: Option<usize>,
}

impl Sessions {
    /// Begins anew after the connection was lost.
    fn begin_again(&mut self) {
        self.before.append(&mut self.active);
        self.shown = None;
    }

    /// Returns lines about the sessions that are no longer active, once the server has named all
    /// that are.
    fn missing(&mut self) -> Vec<String> {
        if self.shown.is_none_or(|shown| self.active.len() < shown) {
            return Vec::new();
        }
        let gone = std::mem::take(&mut self.before);
        gone.keys().map(|key| line(key, SystemClock.now(), "no longer active")).collect()
    }

    /// Applies a frame; returns a line if the session has changed.
    fn apply(&mut self, frame: LiveFrame) -> Option<String> {
        match frame {
            LiveFrame::Session { tenant, session, fleet, .. } => {
                let key = (tenant, session.id.clone());
                let before = self.before.remove(&key).unwrap_or_default();
                let known = self.active.entry(key.clone()).or_insert(before);
                known.0 = *fleet;
                let at = known.0.at;
                self.line(&key, at)
            }
            LiveFrame::Event { tenant, event } => {
                let key = (tenant, event.session_id().clone());
                self.active.get_mut(&key)?.0.apply(&event);
                self.line(&key, event.at)
            }
            LiveFrame::Left { tenant, session_id } => {
                let key = (tenant, session_id);
                self.active.remove(&key)?;
                Some(line(&key, SystemClock.now(), "idle"))
            }
            LiveFrame::Summary { live, shown, .. } => {
                self.shown = Some(shown);
                // Of those that are not named, any may be active.
                if live > shown {
                    self.before.clear();
                }
                None
            }
            _ => None,
        }
    }

    fn line(&mut self, key: &Key, at: Timestamp) -> Option<String> {
        let (fleet, last) = self.active.get_mut(key)?;
        let now = describe(fleet);
        let has_changed = *last != now;
        last.clone_from(&now);
        has_changed.then(|| line(key, at, &now))
    }
}

fn line((tenant, session): &Key, at: Timestamp, what: &str) -> String {
    let tenant = tenant.as_ref().map(|tenant| format!("{tenant}/")).unwrap_or_default();
    format!("{at}  {tenant}{session}  {what}\n")
}

/// Returns what a fleet is doing: a question to a person comes first.
fn describe(fleet: &FleetState) -> String {
    let asked: Vec<_> = fleet.confirmations.values().flatten().map(|call| &*call.name).collect();
    let running: Vec<_> = fleet.running().collect();
    let what = if !asked.is_empty() {
        format!("needs an answer: {}", asked.join(", "))
    } else if running.iter().any(|agent| agent.phase == Phase::Asking) {
        "needs an answer".to_owned()
    } else if running.is_empty() {
        "ending".to_owned()
    } else {
        "running".to_owned()
    };
    let names: Vec<_> = running.iter().map(|agent| &*agent.name).collect();
    let agents = if names.is_empty() { String::new() } else { format!("  {}", names.join(", ")) };
    what + &agents
}

#[cfg(test)]
mod tests {
    //! What is told after a connection was lost.

    use mainstem::api::SessionView;

    use super::*;

    fn named(id: &str) -> LiveFrame {
        let view = json!({
            "id": id, "state": "running", "created_at": "2026-01-01T00:00:00Z", "first_seq": 1,
            "last_seq": 1, "updated_at": "2026-01-01T00:00:00Z", "last_run_at": "2026-01-01T00:00:00Z",
            "queued_runs": [], "runs": 1,
        });
        let session: SessionView = serde_json::from_value(view).unwrap();
        let (tenant, node) = Default::default();
        LiveFrame::Session { tenant, node, session: Box::new(session), fleet: Box::default() }
    }

    fn left(id: &str) -> LiveFrame {
        LiveFrame::Left { tenant: None, session_id: id.parse().unwrap() }
    }

    fn summary(shown: usize) -> LiveFrame {
        LiveFrame::Summary { live: shown, shown, server: None }
    }

    /// Checks which of the sessions `a` and `b` are told to be no longer active, and after which
    /// frame.
    #[track_caller]
    fn check(frames: impl IntoIterator<Item = LiveFrame>, expected: &[(usize, &str)]) {
        let mut sessions = Sessions::default();
        for frame in [summary(2), named("a"), named("b")] {
            sessions.apply(frame);
        }
        sessions.begin_again();
        let mut told = Vec::new();
        for (number, frame) in frames.into_iter().enumerate() {
            sessions.apply(frame);
            told.extend(sessions.missing().into_iter().map(|line| (number, line)));
        }
        let ids = told.iter().map(|(number, line)| (*number, line.split("  ").nth(1).unwrap()));
        assert_eq!(ids.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_ended_meanwhile_is_told_once_the_server_has_named_all_others() {
        check([summary(0)], &[(0, "a"), (0, "b")]);
        check([summary(1), named("b")], &[(1, "a")]);
        check([summary(2), named("b"), named("a")], &[]);
        // One that is idle before it is named is not awaited.
        check([summary(2), named("b"), left("a"), summary(1)], &[(3, "a")]);
        // One that has begun meanwhile takes the place of no other.
        check([summary(1), summary(2), named("new"), named("b")], &[(3, "a")]);
        // Of those beyond the most that are named, any may be active.
        check([LiveFrame::Summary { live: 300, shown: 1, server: None }, named("b")], &[]);
    }
}
