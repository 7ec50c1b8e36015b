//! `mainstem agents new`

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use anyhow::{Context, anyhow, bail};
use mainstem::spec::{AgentSpec, load_file, parse};

use super::{print, say};
use crate::{
    args::New,
    exit::{Exit, Fault, OrExit},
    terminal::Terminal,
};

pub(super) fn new(args: &New, workspace: &Path, terminal: Terminal) -> Result<Exit, Fault> {
    let dir = workspace.join("subagents");
    let path = dir.join(format!("{}.md", args.id));
    let text = text(args, &path).or_exit(Exit::Usage)?;
    fs::create_dir_all(&dir).with_context(|| dir.display().to_string()).or_exit(Exit::Failed)?;
    write(&dir, &path, &text)?;
    match load_file(&path) {
        Ok(parsed) => say(&parsed.warnings, terminal),
        Err(found) => {
            say(&found, terminal);
            return Err(anyhow!("{} can't be read back", path.display())).or_exit(Exit::Failed);
        }
    }
    print(&format!("{}\n", path.display()), terminal)?;
    Ok(Exit::Reply)
}

/// The file, if it would be one.
fn text(args: &New, path: &Path) -> anyhow::Result<String> {
    let description = args.description.trim();
    if let Err(errors) = AgentSpec::new(&args.id, description).validate() {
        bail!(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ").replace("error: ", ""));
    }
    // A string of JSON is one of YAML.
    let description = serde_json::to_string(description)?;
    let text = TEMPLATE.replace("{description}", &description);
    match parse(&args.id, &text, path) {
        Ok(parsed) if parsed.warnings.is_empty() => Ok(text),
        Ok(parsed) => bail!("{}", parsed.warnings[0]),
        Err(errors) => bail!("{}", errors[0]),
    }
}

/// All of the file or nothing, and never over another one.
fn write(dir: &Path, path: &Path, text: &str) -> Result<(), Fault> {
    let mut file = draft(dir).with_context(|| dir.display().to_string()).or_exit(Exit::Failed)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all());
    written.with_context(|| path.display().to_string()).or_exit(Exit::Failed)?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
            let there = format!(
                "{} is there already, and stays as it is: edit it, or take another id",
                path.display()
            );
            Err(anyhow!(there)).or_exit(Exit::Usage)
        }
        Err(error) => Err(error.error).with_context(|| path.display().to_string()).or_exit(Exit::Failed),
    }
}

/// A file that is no agent's yet; with a dot in front, nobody reads it.
fn draft(dir: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".new-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // What the umask leaves of it.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(dir)
}

const TEMPLATE: &str = "\
---
description: {description}
# model: openai:gpt-4o-mini       # without it, the parent's
# tools: [read_file, grep_files]  # without it, all of the parent's; `agent_spawn` lets it have children
# steps: 10                       # most model calls in one go
# mode: subagent                  # or `primary`: only run, never spawned; without it, both
# permissions:
#   \"shell(git *)\": allow
#   shell: ask
---
You are asked to do one task and have nothing but the task's text.

Say here how the agent works, what it must not do, and what its answer looks like.
";
