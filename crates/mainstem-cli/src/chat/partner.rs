//! The session that a chat is with, in this process or on a server.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, anyhow};
use mainstem::client::Server;
use mainstem::{
    Harness,
    api::{AnySession, Begun, NewRun, RunOptions},
    event::{Background, ChildSummary},
};

use crate::{
    args::{Chat, FleetLimits, Source},
    config::{Setting, Settings, var},
    demo,
    exit::{Exit, Fault, OrExit},
    harness::{self, Wanted, check_agent},
    host::{self, Advise, new_session},
    model, progress, store, table,
    terminal::Terminal,
    trust::{self, Reads},
};

const HEADS: [&str; 4] = ["AGENT", "LABEL", "STATUS", "TURNS"];

pub(super) struct Partner {
    pub(super) session: Arc<dyn AnySession>,
    pub(super) greeting: String,
    has_person: bool,
    /// The harness of this process, if the session is here.
    harness: Option<Harness>,
}

impl Partner {
    pub(super) async fn open(args: &Chat, config: &Source, terminal: Terminal) -> Result<Self, Fault> {
        let id = args.session.clone().unwrap_or_else(new_session);
        match host::server(args.at.server.as_deref()).or_exit(Exit::Usage)? {
            Some(_) if args.fleet != FleetLimits::default() => {
                Err(anyhow!("--server: the server sets the limits of its agents; leave the limits out"))
                    .or_exit(Exit::Usage)
            }
            Some(server) => Ok(Self::on_server(args, &server, &id, terminal)),
            None => Self::here(args, config, &id, terminal).await,
        }
    }

    fn on_server(args: &Chat, server: &Server, id: &str, terminal: Terminal) -> Self {
        let mut session = server.open(id);
        if let Some(agent) = &args.agent {
            session = session.with_agent(&**agent);
        }
        let greeting = format!("session {id}");
        Self { session: Arc::new(session), greeting, has_person: terminal.has_person(), harness: None }
    }

    async fn here(args: &Chat, config: &Source, id: &str, terminal: Terminal) -> Result<Self, Fault> {
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
        let harness = wanted.build(&settings, &model)?;
        if let Some(id) = agent {
            check_agent(&harness, id).or_exit(Exit::Usage)?;
        }
        let notes = harness::notes(&settings, false);
        notes.into_iter().chain(harness::found(&harness)).for_each(|note| progress::say(&note, terminal));
        let opened = harness.open_session(id).await;
        let session = opened.with_context(|| format!("--session {id}")).or_exit(Exit::Config)?;
        let root = harness.agents().root().clone();
        let greeting = format!("{} with {}, session {id}", root.id(), root.model().name());
        let (session, has_person) = (Arc::new(session), terminal.has_person());
        Ok(Self { session, greeting, has_person, harness: Some(harness) })
    }

    pub(super) async fn say(&self, input: &str) -> anyhow::Result<Begun> {
        // A turn that a task began may be active.
        self.run(NewRun::of(input).with_queue(true)).await
    }

    pub(super) async fn resume(&self) -> anyhow::Result<Begun> {
        self.run(NewRun::resuming()).await
    }

    async fn run(&self, run: NewRun) -> anyhow::Result<Begun> {
        let options = RunOptions {
            people: Some(self.has_person),
            // Events between turns are not read, so a turn lasts until its tasks are over.
            background: Background::Wait,
            ..RunOptions::default()
        };
        self.session.run(run.with_options(options)).await.advise()
    }

    /// The children, as a table.
    pub(super) async fn agents(&self) -> anyhow::Result<String> {
        let children = self.session.children().await.advise()?;
        if children.is_empty() {
            return Ok(String::new());
        }
        let row = |child: &ChildSummary| {
            let label = child.label.clone().unwrap_or_default();
            let status = child.status.as_str().to_owned();
            [child.agent_key.to_string(), label, status, child.turns.to_string()]
        };
        Ok(table::text(HEADS, children.iter().map(row)))
    }

    /// Ends the work of this process, and waits until it is recorded.
    pub(super) async fn close(self, terminal: Terminal) {
        if let Some(harness) = self.harness {
            harness.shutdown(Duration::ZERO).await;
            store::close(&harness, terminal).await;
        }
    }
}
