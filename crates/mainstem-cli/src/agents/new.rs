//! `mainstem agents new`

use std::path::Path;

use anyhow::{anyhow, bail};
use mainstem::spec::{AgentSpec, CreateError, create_file, load_file, parse};

use super::say;
use crate::{
    args::New,
    exit::{Exit, Fault, OrExit},
    print::print,
    terminal::Terminal,
};

pub(super) fn new(args: &New, workspace: &Path, terminal: Terminal) -> Result<Exit, Fault> {
    let dir = workspace.join("subagents");
    let path = dir.join(format!("{}.md", args.id));
    let text = text(args, &path).or_exit(Exit::Usage)?;
    create_file(&dir, &args.id, &text).map_err(|error| match error {
        CreateError::Io { .. } => Fault::new(Exit::Failed, error),
        error => Fault::new(Exit::Usage, error),
    })?;
    match load_file(&path) {
        Ok(parsed) => say(&parsed.warnings, terminal),
        Err(found) => {
            say(&found, terminal);
            return Err(anyhow!("{} can't be read back", path.display())).or_exit(Exit::Failed);
        }
    }
    print(&format!("{}\n", path.display()))?;
    Ok(Exit::Reply)
}

/// Returns the text of the new file, if it parses.
fn text(args: &New, path: &Path) -> anyhow::Result<String> {
    let description = args.description.trim();
    if let Err(errors) = AgentSpec::new(&args.id, description).validate() {
        bail!(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ").replace("error: ", ""));
    }
    // A JSON string is a YAML string.
    let description = serde_json::to_string(description)?;
    let text = TEMPLATE.replace("{description}", &description);
    match parse(&args.id, &text, path) {
        Ok(parsed) if parsed.warnings.is_empty() => Ok(text),
        Ok(parsed) => bail!("{}", parsed.warnings[0]),
        Err(errors) => bail!("{}", errors[0]),
    }
}

const TEMPLATE: &str = "\
---
description: {description}
# model: openai:gpt-4o-mini       # without it, the parent's
# tools: [read_file, grep_files]  # without it, all of the parent's; `agent_spawn` lets it have children
# steps: 10                       # most model calls in one go
workspace:
  mode: shared                    # works where its parent does; `isolated`: an empty directory of its own
# mode: subagent                  # or `primary`: only run, never spawned; without it, both
# permissions:
#   \"shell(git *)\": allow
#   shell: ask
---
You are asked to do one task and have nothing but the task's text.

Say here how the agent works, what it must not do, and what its answer looks like.
";
