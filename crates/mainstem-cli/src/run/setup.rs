//! Builds the harness and the prompt of a run from its settings.

use anyhow::ensure;
use mainstem::{Harness, message::SessionId};
use tokio::runtime::Runtime;

use super::{Person, prompt::prompt};
use crate::{
    args,
    config::{Config, Setting, var},
    demo,
    exit::{Exit, Fault, OrExit},
    harness::{self, Requirements, check_agent, workspace},
    host::new_session,
    model,
    shown_notes::Findings,
    store::{self, Store},
    terminal::Terminal,
    trusted::canonical,
};

/// A harness and its prompt.
pub(super) struct Setup {
    pub(super) harness: Harness,
    /// Empty if a turn is resumed.
    pub(super) prompt: String,
    /// Notes to show before the run.
    pub(super) notes: Vec<String>,
    /// The findings among them.
    pub(super) found: Findings,
    /// Whether the model is the demo, whose tools change nothing.
    pub(super) is_demo: bool,
    /// The session, if it is recorded.
    pub(super) session: Option<SessionId>,
}

pub(super) fn setup(
    args: &args::Run,
    config: &Config,
    person: Person,
    runtime: &Runtime,
) -> Result<Setup, Fault> {
    let mut notes = Vec::new();
    let terminal = person.terminal;
    let model = choose_model(config, terminal, &mut notes).or_exit(Exit::Config)?;
    let is_demo = model.value == demo::NAME;
    if is_demo {
        check_demo(args, &mut notes).or_exit(Exit::Usage)?;
    }
    notes.extend(harness::notes(&config.settings, is_demo));
    let can_return = person.can_answer && !is_demo;
    let (session, journal) = record(args, can_return, runtime, &mut notes).or_exit(Exit::Config)?.unzip();
    let requirements = Requirements {
        agent: args.agent.as_deref(),
        plan: args.plan,
        foreign: args.foreign,
        demo_pace: args.demo_pace,
        journal,
        ..Requirements::default()
    };
    let harness = requirements.build(config, &model)?;
    let found = Findings::of(&harness, &canonical(&workspace(&config.settings).value));
    notes.extend(found.new.iter().cloned());
    notes.extend(args.only_agent.as_deref().and_then(|id| unknown_agent_note(&harness, id)));
    if let Some(id) = &args.agent {
        check_agent(&harness, id).or_exit(Exit::Usage)?;
    }
    let prompt = prompt(args, is_demo, terminal).or_exit(Exit::Usage)?;
    Ok(Setup { harness, prompt, notes, found, is_demo, session })
}

/// Opens the journal of the session that is named, or of a new one that a person can return to.
///
/// # Errors
/// The journal of a session that is named can't be opened.
fn record(
    args: &args::Run,
    can_return: bool,
    runtime: &Runtime,
    notes: &mut Vec<String>,
) -> anyhow::Result<Option<(SessionId, Store)>> {
    if let Some(id) = &args.session {
        return Ok(Some((id.clone(), store::open(args.journal.as_ref())?)));
    }
    if args.is_ephemeral || !can_return {
        return Ok(None);
    }
    let id = new_session("run");
    // Opening a session writes to the journal, which may be on a full disk.
    let opened = store::open(None).and_then(|store| {
        runtime.block_on(store.journal.open(&id))?;
        Ok(store)
    });
    match opened {
        Ok(store) => Ok(Some((id, store))),
        Err(error) => {
            notes.push(format!("warning: the run is not recorded, and can't be resumed: {error:#}"));
            Ok(None)
        }
    }
}

/// Returns the model of the settings, or the demo if none is configured, with a note.
///
/// # Errors
/// No model is configured, and stdout is read by a program, which must not take a script for an
/// answer.
fn choose_model(
    config: &Config,
    terminal: Terminal,
    notes: &mut Vec<String>,
) -> anyhow::Result<Setting<String>> {
    if let Some(model) = model::choose(&config.settings, var) {
        return Ok(model);
    }
    ensure!(
        terminal.stdout,
        "{}\nor play the demo: `mainstem run -m demo`",
        model::none_configured(&config.settings)
    );
    notes.push(model::demo_instead(&config.settings));
    Ok(Setting::new(demo::NAME.to_owned(), "the default"))
}

/// Checks that the arguments apply to the demo.
fn check_demo(args: &args::Run, notes: &mut Vec<String>) -> anyhow::Result<()> {
    ensure!(
        args.output_schema.is_none(),
        "--output-schema: the demo plays a script, whose reply has no schema"
    );
    ensure!(args.attach.is_empty(), "--attach: the demo plays a script, which reads no files");
    ensure!(args.session.is_none(), "--session: the demo plays a script, which can't continue");
    if !args.prompt.is_empty() {
        notes.push("warning: the demo plays a script; the PROMPT is not used".to_owned());
    }
    Ok(())
}

/// Returns a warning if `--only-agent` names an agent that does not exist.
fn unknown_agent_note(harness: &Harness, id: &str) -> Option<String> {
    let agents = harness.agents();
    let is_known = **agents.root().id() == *id || agents.catalog().get(id).is_some();
    (!is_known).then(|| format!("warning: --only-agent: there is no agent {id:?}"))
}
