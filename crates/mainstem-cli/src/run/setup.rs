//! From settings to a harness and a prompt; or to an error that says what to set.

use anyhow::{Context, anyhow, bail, ensure};
use mainstem::Harness;

use crate::{
    args,
    config::{Setting, Settings, read::bounded, var},
    demo,
    exit::{Exit, Fault, OrExit},
    harness::{self, Wanted, check_agent},
    model, store,
    terminal::Terminal,
};

/// What is to be run.
pub(super) struct Setup {
    pub(super) harness: Harness,
    /// Empty if a turn is taken up.
    pub(super) prompt: String,
    /// What a person should know beforehand.
    pub(super) notes: Vec<String>,
}

pub(super) fn setup(args: &args::Run, settings: &Settings, terminal: Terminal) -> Result<Setup, Fault> {
    let mut notes = Vec::new();
    let model = match model::choose(settings, var) {
        Some(model) => model,
        // A program that reads stdout must not mistake a script for an answer.
        None if !terminal.stdout => {
            let how = format!("no model is configured: {}; or say -m demo for the demo", model::HOW);
            return Err(anyhow!(how)).or_exit(Exit::Config);
        }
        None => {
            let variables = model::variables();
            notes
                .push(format!("no model is configured, so this is the demo; set {variables}, or see --help"));
            Setting::new(demo::NAME.to_owned(), "the default")
        }
    };
    let is_demo = model.value == demo::NAME;
    if is_demo && args.output_schema.is_some() {
        return Err(anyhow!("--output-schema: the demo plays a script, which has no answer of that form"))
            .or_exit(Exit::Usage);
    }
    if is_demo && args.session.is_some() {
        return Err(anyhow!("--session: the demo plays a script, which does not go on")).or_exit(Exit::Usage);
    }
    notes.extend(harness::notes(settings, is_demo));
    let keeps = args.session.as_ref().map(|_| store::open(args.journal.as_deref()));
    let journal = keeps.transpose().or_exit(Exit::Config)?;
    let wanted = Wanted {
        agent: args.agent.as_deref(),
        plan: args.plan,
        foreign: args.foreign,
        demo_pace: args.demo_pace,
        journal,
    };
    let harness = wanted.build(settings, &model)?;
    notes.extend(harness::found(&harness));
    if let Some(id) = args
        .only_agent
        .as_deref()
        .filter(|id| **harness.agents().root().id() != **id && harness.agents().catalog().get(id).is_none())
    {
        notes.push(format!("warning: --only-agent: there is no agent {id:?}"));
    }
    if let Some(id) = &args.agent {
        check_agent(&harness, id).or_exit(Exit::Usage)?;
    }
    let prompt = prompt(args, is_demo).or_exit(Exit::Usage)?;
    Ok(Setup { harness, prompt, notes })
}

pub(super) fn prompt(args: &args::Run, is_demo: bool) -> anyhow::Result<String> {
    if args.resume {
        return Ok(String::new());
    }
    let prompt = match args.prompt.as_deref() {
        Some("-") => stdin()?,
        Some(prompt) => prompt.to_owned(),
        None if is_demo => demo::PROMPT.to_owned(),
        None => bail!("no PROMPT is given; `-` reads it from stdin"),
    };
    ensure!(!prompt.trim().is_empty(), "the PROMPT is empty");
    Ok(prompt)
}

/// Longest prompt that is read from stdin, in bytes.
const PROMPT: u64 = 16 << 20;

fn stdin() -> anyhow::Result<String> {
    bounded(std::io::stdin(), PROMPT).context("the PROMPT can't be read from stdin")
}
