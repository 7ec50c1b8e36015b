//! With whom one talks: an agent of this process, or of a server.

use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use mainstem::{
    Harness,
    prelude::{Background, RunOptions, Session},
};
use serde_json::{Value, json};

use crate::{
    args::{Chat, FleetLimits, Source},
    config::{Setting, Settings, var},
    demo,
    exit::{Exit, Fault, OrExit},
    harness::{self, Wanted, check_agent},
    model, progress,
    remote::{Remote, escape},
    store, table,
    terminal::Terminal,
    trust::{self, Reads},
    turn::{Events, Turn, new_session},
};

const HEADS: [&str; 4] = ["AGENT", "LABEL", "STATUS", "TURNS"];

pub(super) enum Partner {
    Here { harness: Harness, session: Session, people: bool },
    There { remote: Remote, session: String, agent: Option<String>, people: bool },
}

impl Partner {
    pub(super) async fn open(args: &Chat, config: &Source, terminal: Terminal) -> Result<Self, Fault> {
        let session = args.session.clone().unwrap_or_else(new_session);
        match Remote::of(&args.at).or_exit(Exit::Usage)? {
            Some(_) if args.fleet != FleetLimits::default() => Err(anyhow!(
                "--server: how far agents may go there is the server's to say; leave the limits out"
            ))
            .or_exit(Exit::Usage),
            Some(remote) => {
                let (agent, people) = (args.agent.clone(), terminal.has_person());
                Ok(Self::There { remote, session, agent, people })
            }
            None => Self::here(args, config, &session, terminal).await,
        }
    }

    async fn here(args: &Chat, config: &Source, session: &str, terminal: Terminal) -> Result<Self, Fault> {
        let flags = Settings {
            model: args.model.clone().map(|name| Setting::new(name, "--model")),
            workspace: args.workspace.clone().map(|path| Setting::new(path, "--workspace")),
            files: args.no_files.then(|| Setting::new(false, "--no-files")),
            shell: args.shell.then(|| Setting::new(true, "--shell")),
            fleet: args.fleet,
            ..Settings::of_sandbox(&args.sandbox)
        };
        let settings = trust::settle(flags, config, Reads::Agents, terminal).or_exit(Exit::Config)?;
        let model = model::choose(&settings, var)
            .filter(|model| model.value != demo::NAME)
            .ok_or_else(|| anyhow!("a chat needs a model, and none is configured: {}", model::HOW))
            .or_exit(Exit::Config)?;
        let journal = store::open(args.journal.as_deref()).or_exit(Exit::Config)?;
        let agent = args.agent.as_deref();
        let wanted = Wanted { agent, plan: false, foreign: false, demo_pace: 1.0, journal: Some(journal) };
        let harness = wanted.build(&settings, &model).or_exit(Exit::Config)?;
        if let Some(id) = agent {
            check_agent(&harness, id).or_exit(Exit::Usage)?;
        }
        let notes = harness::notes(&settings, false);
        notes.into_iter().chain(harness.warnings()).for_each(|note| progress::say(&note, terminal));
        let opened = harness.open_session(session).await;
        let session = opened.with_context(|| format!("--session {session}")).or_exit(Exit::Config)?;
        Ok(Self::Here { harness, session, people: terminal.has_person() })
    }

    pub(super) fn greeting(&self) -> String {
        match self {
            Self::Here { harness, session, .. } => {
                let crew = harness.crew();
                format!("{} with {}, session {}", crew.root.id(), crew.root.model().name(), session.id())
            }
            Self::There { session, .. } => format!("session {session}"),
        }
    }

    pub(super) async fn say(&self, input: &str) -> anyhow::Result<(Turn, Events)> {
        match self {
            Self::Here { session, people, .. } => Ok(Turn::here(session.queue(input, options(*people)))),
            Self::There { .. } => self.there(json!({ "input": input })).await,
        }
    }

    pub(super) async fn resume(&self) -> anyhow::Result<(Turn, Events)> {
        match self {
            Self::Here { session, people, .. } => Ok(Turn::here(session.resume(options(*people))?)),
            Self::There { .. } => self.there(json!({ "resume": true })).await,
        }
    }

    async fn there(&self, mut body: Value) -> anyhow::Result<(Turn, Events)> {
        let Self::There { remote, session, agent, people } = self else { bail!("this is no server") };
        body["agent"] = json!(agent);
        body["options"] = json!({ "people": people, "background": "wait" });
        Turn::there(remote, session, &body).await
    }

    /// The children, as a table.
    pub(super) async fn agents(&self) -> anyhow::Result<String> {
        let children = match self {
            Self::Here { session, .. } => json!(session.children()),
            Self::There { remote, session, .. } => {
                remote.get(&format!("/sessions/{}/agents", escape(session))).await?["items"].take()
            }
        };
        let children = children.as_array().cloned().unwrap_or_default();
        if children.is_empty() {
            return Ok(String::new());
        }
        let text = |child: &Value, field: &str| child[field].as_str().unwrap_or_default().to_owned();
        let row = |child: &Value| {
            [
                text(child, "agent_key"),
                text(child, "label"),
                text(child, "status"),
                child["turns"].to_string(),
            ]
        };
        Ok(table::text(HEADS, children.iter().map(row)))
    }

    /// Ends what goes on, and keeps what was said.
    pub(super) async fn close(self, terminal: Terminal) {
        if let Self::Here { harness, .. } = self {
            harness.shutdown(Duration::ZERO).await;
            store::close(&harness, terminal).await;
        }
    }
}

fn options(people: bool) -> RunOptions {
    // Nobody reads between turns, so a turn lasts until its tasks are over.
    RunOptions::new().with_people(people).with_background(Background::Wait)
}
