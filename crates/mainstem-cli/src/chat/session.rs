//! The session that a chat is with, in this process or on a server.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, anyhow};
use mainstem::client::Server;
use mainstem::{
    Harness,
    api::{AnySession, Begun, Code, NewRun, RunOptions},
    event::{Background, ChildSummary, FleetState},
    message::{Message, SessionId},
    model::ModelRegistry,
};

use super::Spent;
use crate::{
    approval::{Allowed, Approval},
    args::{Chat, Source},
    config::{Budget, Setting, var},
    demo,
    exit::{Exit, Fault, OrExit},
    harness::{self, Requirements, check_agent, workspace},
    host::{self, Advise, new_session},
    model, progress, store, table, tasks,
    terminal::Terminal,
    trust::{self, Reads},
    trusted::canonical,
};

const HEADS: [&str; 4] = ["AGENT", "TITLE", "STATUS", "TURNS"];

pub(super) struct ChatSession {
    pub(super) session: Arc<dyn AnySession>,
    pub(super) greeting: String,
    options: RunOptions,
    /// The harness of this process, if the session is here.
    harness: Option<Harness>,
    /// What a person always allows, until the chat takes it.
    pub(super) allowed: Allowed,
    /// The providers of models, if the session is here.
    models: Option<ModelRegistry>,
    /// The model that is asked of a server; by default its own.
    model: Option<String>,
    is_recorded: bool,
}

impl ChatSession {
    pub(super) async fn open(args: &Chat, source: &Source, terminal: Terminal) -> Result<Self, Fault> {
        let id = match &args.session {
            Some(id) => id.clone(),
            None if args.is_continued => {
                host::latest(args.at.server.as_deref(), args.journal.as_ref()).await?
            }
            None => new_session("chat"),
        };
        match host::server(args.at.server.as_deref()).or_exit(Exit::Usage)? {
            Some(server) => Self::on_server(args, &server, &id, terminal),
            None => Self::here(args, source, &id, terminal).await,
        }
    }

    fn on_server(args: &Chat, server: &Server, id: &SessionId, terminal: Terminal) -> Result<Self, Fault> {
        let mut session = server.open(id.clone()).or_exit(Exit::Usage)?;
        if let Some(agent) = &args.agent {
            session = session.with_agent(&**agent);
        }
        let greeting = format!("session {id}");
        let project = args.at.server.clone().unwrap_or_default();
        let approval =
            Approval::new(args.approve, None, project, terminal.has_person()).or_exit(Exit::Usage)?;
        let approval = approval.with_warning_of_changes(terminal);
        let options = approval.options(options(args, &args.budget));
        approval.warning().iter().for_each(|warning| progress::say(warning, terminal));
        let allowed = approval.into_allowed();
        Ok(Self {
            session: Arc::new(session),
            greeting,
            options,
            harness: None,
            allowed,
            models: None,
            model: args.settings.model.as_ref().map(|model| model.value.clone()),
            is_recorded: true,
        })
    }

    async fn here(args: &Chat, source: &Source, id: &SessionId, terminal: Terminal) -> Result<Self, Fault> {
        let mut config =
            trust::settle(args.settings(), source, Reads::Agents, terminal).or_exit(Exit::Config)?;
        let project = canonical(&workspace(&config.settings).value).display().to_string();
        let approval = Approval::new(args.approve, Some(&mut config), project, terminal.has_person());
        let approval = approval.or_exit(Exit::Usage)?.with_warning_of_changes(terminal);
        let chosen = model::choose(&config.settings, var);
        if chosen.is_none() && terminal.stdin {
            progress::say(&model::demo_instead(&config.settings), terminal);
        }
        let model = chosen
            .or_else(|| terminal.stdin.then(|| Setting::new(demo::NAME.to_owned(), "the default")))
            .ok_or_else(|| anyhow!("a chat needs a model; {}", model::none_configured(&config.settings)))
            .or_exit(Exit::Config)?;
        let is_demo = model.value == demo::NAME;
        if is_demo {
            if args.session.is_some() || args.is_continued || args.journal.is_some() {
                let why = anyhow!(
                    "the demo is not recorded: --session, --continue and --journal need a model; {}",
                    model::ADVICE
                );
                return Err(why).or_exit(Exit::Config);
            }
            progress::say("the demo plays a script, whatever you say; it is not recorded", terminal);
        }
        // What a script says is worth no record.
        let journal = (!is_demo).then(|| store::open(args.journal.as_ref()));
        let journal = journal.transpose().or_exit(Exit::Config)?;
        let agent = args.agent.as_deref();
        let models = model::registry(&config.settings, 1.0, var).or_exit(Exit::Config)?;
        let requirements =
            Requirements { agent, plan: args.plan.is_some(), journal, ..Requirements::default() };
        let harness = requirements.build(&config, &model)?;
        if let Some(id) = agent {
            check_agent(&harness, id).or_exit(Exit::Usage)?;
        }
        let notes = harness::notes(&config.settings, false);
        notes.into_iter().chain(harness::found(&harness)).for_each(|note| progress::say(&note, terminal));
        let root = harness.agents().root().clone();
        let with = format!("{} with {}", root.id(), root.model().name());
        let (session, greeting) = if is_demo {
            (harness.new_session(), with)
        } else {
            let opened = harness.open_session(id.clone()).await;
            let session = opened.with_context(|| format!("--session {id}")).or_exit(Exit::Config)?;
            (session, format!("{with}, session {id}"))
        };
        let options = approval.options(options(args, &config.settings.budget));
        approval.warning().iter().for_each(|warning| progress::say(warning, terminal));
        let allowed = approval.into_allowed();
        Ok(Self {
            session: Arc::new(session),
            greeting,
            options,
            harness: Some(harness),
            allowed,
            models: Some(models),
            model: None,
            is_recorded: !is_demo,
        })
    }

    pub(super) async fn say(&self, input: Message) -> anyhow::Result<Begun> {
        // A turn that a task started may be active.
        self.run(NewRun::new(input).with_queue(true)).await
    }

    pub(super) async fn resume(&self) -> anyhow::Result<Begun> {
        self.run(NewRun::resuming()).await
    }

    pub(super) async fn compact(&self) -> anyhow::Result<Begun> {
        self.run(NewRun::compacting().with_queue(true)).await
    }

    async fn run(&self, mut run: NewRun) -> anyhow::Result<Begun> {
        run.model.clone_from(&self.model);
        self.session.run(run.with_options(self.options.clone())).await.advise()
    }

    /// Returns the children as a table.
    pub(super) async fn agents(&self) -> anyhow::Result<String> {
        let children = self.session.children().await.advise()?;
        if children.is_empty() {
            return Ok(String::new());
        }
        let row = |child: &ChildSummary| {
            let title = child.title.as_deref().unwrap_or_default().to_owned();
            let status = child.status.as_str().to_owned();
            [child.agent_key.to_string(), title, status, child.turns.to_string()]
        };
        Ok(table::text(HEADS, children.iter().map(row)))
    }

    /// Returns its background tasks as a table.
    pub(super) async fn tasks(&self) -> anyhow::Result<String> {
        let tasks = self.session.tasks().await.advise()?;
        if tasks.is_empty() {
            return Ok(String::new());
        }
        Ok(table::text(tasks::HEADS, tasks.iter().map(tasks::row)))
    }

    /// Returns what its agents have used, and what the turns of this chat have cost.
    pub(super) async fn cost(&self, spent: Spent) -> anyhow::Result<String> {
        let FleetState { usage, agents, .. } = match self.session.fleet().await {
            // It begins with its first turn.
            Err(error) if error.has_code(&Code::NotFound) => FleetState::default(),
            fleet => fleet.advise()?,
        };
        Ok(format!(
            "session: {} in ({} from the cache), {} out, by {}\nthis chat: {spent}\n",
            progress::tokens(usage.input_tokens),
            progress::tokens(usage.cache_read_tokens),
            progress::tokens(usage.output_tokens),
            progress::agents(agents.len()),
        ))
    }

    /// Returns the name of the model.
    pub(super) fn model(&self) -> String {
        match (&self.harness, &self.model) {
            (Some(harness), _) => format!("the model is {}", harness.agents().root().model().name()),
            (None, Some(model)) => format!("the model is {model}"),
            (None, None) => "the server chooses the model".to_owned(),
        }
    }

    /// Checks that the session can continue with another model; a server checks it with the next
    /// turn.
    ///
    /// # Errors
    /// The model is unknown.
    pub(super) fn check_model(&self, name: &str) -> anyhow::Result<()> {
        self.models.as_ref().map_or(Ok(()), |models| model::resolve(models, name).map(drop))
    }

    /// Sets the plan mode of the next turns; returns `true` if agents need tools for it first.
    pub(super) fn plan(&mut self, is_on: bool) -> bool {
        self.options.plan_mode = Some(is_on);
        let has_tools = |harness: &Harness| harness.agents().root().tools().get("plan_exit").is_some();
        is_on && self.harness.as_ref().is_some_and(|harness| !has_tools(harness))
    }

    /// Returns its id, if it can be continued later.
    pub(super) fn recorded_as(&self) -> Option<&SessionId> {
        Some(self.session.id()).filter(|_| self.is_recorded)
    }

    /// Stops the harness of this process, and waits until its events are recorded.
    pub(super) async fn close(self, terminal: Terminal) {
        if let Some(harness) = self.harness {
            harness.shutdown(Duration::ZERO).await;
            store::close(&harness, terminal).await;
        }
    }
}

/// Returns the options of each turn.
fn options(args: &Chat, budget: &Budget) -> RunOptions {
    RunOptions {
        plan_mode: args.plan,
        // Events between turns are not read, so a turn lasts until its tasks are over.
        background: Background::Wait,
        ..args.settings.run_options(budget)
    }
}
