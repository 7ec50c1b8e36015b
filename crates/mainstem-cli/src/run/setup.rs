//! From settings to a harness and a prompt; or to an error that says what to set.

use std::io::Read;

use anyhow::{Context, anyhow, bail, ensure};
use mainstem::{BuildError, Harness, spec::Mode};

use crate::{
    args,
    config::{PROJECT, Setting, Settings, var},
    demo,
    exit::{Exit, Fault, OrExit},
    harness::{self, in_words, workspace},
    model,
    terminal::Terminal,
};

/// What is to be run.
pub(super) struct Setup {
    pub(super) harness: Harness,
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
            notes.push(
                "No model is configured: this is the demo. Set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or see --help.".to_owned(),
            );
            Setting::new(demo::NAME.to_owned(), "the default")
        }
    };
    let is_demo = model.value == demo::NAME;
    if is_demo && args.output_schema.is_some() {
        return Err(anyhow!("--output-schema: the demo plays a script, which has no answer of that form"))
            .or_exit(Exit::Usage);
    }
    if is_demo {
        notes.extend(unused(settings));
    } else {
        notes.extend(shell_of_the_project(settings));
        notes.extend(servers_of_the_project(settings));
        notes.extend(tools_of_the_project(settings));
    }
    let harness = harness(args, settings, &model).or_exit(Exit::Config)?;
    notes.extend(harness.warnings());
    if let Some(id) =
        args.only_agent.as_deref().filter(|id| *id != "main" && harness.crew().catalog.get(id).is_none())
    {
        notes.push(format!("warning: --only-agent: there is no agent {id:?}"));
    }
    if let Some(id) = &args.agent {
        check_agent(&harness, id).or_exit(Exit::Usage)?;
    }
    let prompt = prompt(args, is_demo).or_exit(Exit::Usage)?;
    Ok(Setup { harness, prompt, notes })
}

fn harness(args: &args::Run, settings: &Settings, model: &Setting<String>) -> anyhow::Result<Harness> {
    let registry = model::registry(settings, args.demo_pace, var)?;
    let root = args.agent.as_deref().unwrap_or("main");
    let name = &model.value;
    let resolved = registry.resolve(name).with_context(|| model.origin.clone())?;
    let mut harness = Harness::builder(root, resolved)
        .registry(registry)
        .plan_tools(args.plan)
        .permissions(settings.permissions.clone());
    let workspace = &workspace(settings);
    harness = match &**name {
        demo::NAME => demo::furnish(harness, args.demo_pace),
        _ => {
            let harness = harness.workspace(&workspace.value);
            harness::furnish(if args.foreign { harness.foreign_agents() } else { harness }, settings)?
        }
    };
    if let Some(prices) = &settings.prices {
        harness = harness.prices(prices.clone());
    }
    if let Some(most) = settings.max_turns {
        harness = harness.max_iterations(most.get());
    }
    harness.build().map_err(|error| in_words(error, workspace))
}

/// What the demo has no use for.
fn unused(settings: &Settings) -> impl Iterator<Item = String> {
    let workspace = settings.workspace.as_ref().map(|said| ("agents", &said.origin));
    let shell = settings.shell.as_ref().filter(|said| said.value).map(|said| ("tools", &said.origin));
    let servers = settings.mcp.values().next().map(|said| ("tools", &said.origin));
    let unused = workspace.into_iter().chain(shell).chain(servers);
    unused.map(|(what, origin)| format!("warning: the demo brings its own {what}; {origin} is not used"))
}

/// Who runs this command in a directory may not have written the file that lies there.
fn shell_of_the_project(settings: &Settings) -> Option<String> {
    settings.shell.as_ref().filter(|said| said.value && said.origin == PROJECT)?;
    Some(format!("warning: agents can run commands, because {PROJECT} says so"))
}

/// Nor may they expect where the file sends their key.
fn servers_of_the_project(settings: &Settings) -> impl Iterator<Item = String> {
    let servers = settings.providers.values().filter_map(|access| access.base_url.as_ref());
    servers.filter(|said| said.origin == PROJECT).map(|said| {
        format!("warning: {PROJECT} sends prompts, and the key if there is one, to {}", said.value)
    })
}

/// Whether the agent exists and may run as the root.
fn check_agent(harness: &Harness, id: &str) -> anyhow::Result<()> {
    let crew = harness.crew();
    let may_run = |spec: &mainstem::spec::AgentSpec| spec.mode != Mode::Subagent;
    match crew.catalog.get(id) {
        Some(entry) => ensure!(may_run(&entry.spec), "--agent: {id:?} can't be run: its mode is subagent"),
        None => {
            let listed =
                crew.catalog.iter().map(|entry| &entry.spec).filter(|spec| spec.is_listed() && may_run(spec));
            let known = listed.map(|spec| spec.id.clone()).collect();
            return Err(BuildError::UnknownAgent { id: id.to_owned(), known }).context("--agent");
        }
    }
    Ok(())
}

/// Nor what it starts.
fn tools_of_the_project(settings: &Settings) -> impl Iterator<Item = String> {
    let servers = settings.mcp.iter().filter(|(_, said)| said.origin == PROJECT);
    servers.map(|(name, said)| {
        let does = if said.value.command_line().is_some() { "starts" } else { "sends tool calls to" };
        format!("warning: {PROJECT} {does} `{}`, for MCP server {name:?}", said.value)
    })
}

fn prompt(args: &args::Run, is_demo: bool) -> anyhow::Result<String> {
    let prompt = match args.prompt.as_deref() {
        Some("-") => stdin()?,
        Some(prompt) => prompt.to_owned(),
        None if is_demo => demo::PROMPT.to_owned(),
        None => bail!("no PROMPT is given; `-` reads it from stdin"),
    };
    ensure!(!prompt.trim().is_empty(), "the PROMPT is empty");
    Ok(prompt)
}

fn stdin() -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("the PROMPT can't be read from stdin")?;
    Ok(text)
}
