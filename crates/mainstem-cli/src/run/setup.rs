//! Settings to a harness and a prompt, or to an error that names what to set.

use anyhow::{Context, anyhow, bail, ensure};
use mainstem::{Harness, provider};

use crate::{
    args,
    config::{Config, Setting, read::bounded, var},
    demo,
    exit::{Exit, Fault, OrExit},
    harness::{self, Requirements, check_agent},
    model, store,
    terminal::Terminal,
};

/// A harness and its prompt.
pub(super) struct Setup {
    pub(super) harness: Harness,
    /// Empty if a turn is resumed.
    pub(super) prompt: String,
    /// Notes to show before the run.
    pub(super) notes: Vec<String>,
}

pub(super) fn setup(args: &args::Run, config: &Config, terminal: Terminal) -> Result<Setup, Fault> {
    let mut notes = Vec::new();
    let model = match model::choose(&config.settings, var) {
        Some(model) => model,
        // A program that reads stdout must not take a script for an answer.
        None if !terminal.stdout => {
            let how = format!(
                "no model is configured\n{}\nor play the demo: `mainstem run -m demo`",
                model::ADVICE
            );
            return Err(anyhow!(how)).or_exit(Exit::Config);
        }
        None => {
            let variables = provider::variables();
            notes
                .push(format!("no model is configured, so this is the demo; set {variables}, or see --help"));
            Setting::new(demo::NAME.to_owned(), "the default")
        }
    };
    let is_demo = model.value == demo::NAME;
    if is_demo && args.output_schema.is_some() {
        return Err(anyhow!("--output-schema: the demo plays a script, whose reply has no schema"))
            .or_exit(Exit::Usage);
    }
    if is_demo && args.session.is_some() {
        return Err(anyhow!("--session: the demo plays a script, which can't continue")).or_exit(Exit::Usage);
    }
    if is_demo && args.prompt.is_some() {
        notes.push("warning: the demo plays a script; the PROMPT is not used".to_owned());
    }
    notes.extend(harness::notes(&config.settings, is_demo));
    let keeps = args.session.as_ref().map(|_| store::open(args.journal.as_deref()));
    let journal = keeps.transpose().or_exit(Exit::Config)?;
    let requirements = Requirements {
        agent: args.agent.as_deref(),
        plan: args.plan,
        foreign: args.foreign,
        demo_pace: args.demo_pace,
        journal,
    };
    let harness = requirements.build(config, &model)?;
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

/// The longest prompt from stdin, in bytes.
const PROMPT: u64 = 16 << 20;

fn stdin() -> anyhow::Result<String> {
    bounded(std::io::stdin(), PROMPT).context("the PROMPT can't be read from stdin")
}
