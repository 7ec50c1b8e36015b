//! `mainstem agents validate`

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use mainstem::{
    declarations::{Diagnostic, Severity},
    spec::{Sources, SpecSet, is_name, load_dir, load_file, load_prompts},
};
use serde_json::json;

use super::{findings::harness, sources};
use crate::{
    args::{Form, Validate},
    config::{Config, Setting},
    exit::{Exit, Fault, OrExit},
    harness::in_words,
    print::{counted, json, print},
};

pub(super) fn validate(
    args: &Validate,
    config: &Config,
    workspace: &Setting<PathBuf>,
) -> Result<Exit, Fault> {
    let harness = harness(config, &workspace.value, args.listing.foreign).or_exit(Exit::Config)?;
    let found = match &args.targets[..] {
        [] => harness.check().map_err(|error| in_words(error, workspace)).or_exit(Exit::Config)?,
        targets => {
            let (specs, mut found) = of_targets(targets, &sources(&workspace.value, &args.listing))?;
            let more = harness.check_agents(&specs).map_err(|error| in_words(error, workspace));
            found.extend(more.or_exit(Exit::Config)?);
            found
        }
    };
    match args.listing.output {
        Form::Json => json(&json!(found))?,
        Form::Text => print(&found.iter().map(|found| format!("{found}\n")).collect::<String>())?,
    }
    let count = |severity| found.iter().filter(|found| found.severity() == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let _ = writeln!(io::stderr(), "{}, {}", counted(errors, "error"), counted(warnings, "warning"));
    let passes = errors == 0 && (warnings == 0 || !args.strict);
    Ok(if passes { Exit::Reply } else { Exit::Failed })
}

/// Returns the agents of these files, directories and ids, and the errors of the files.
fn of_targets(targets: &[PathBuf], sources: &Sources) -> Result<(SpecSet, Vec<Diagnostic>), Fault> {
    let (mut specs, mut found) = (SpecSet::new(), Vec::new());
    for target in targets {
        if target.is_dir() {
            let (more, errors) = load_dir(target);
            found.extend(errors);
            found.extend(specs.merge(more));
        } else {
            match load_file(&file(target, sources).or_exit(Exit::Usage)?) {
                Ok(parsed) => {
                    found.extend(parsed.warnings);
                    found.extend(specs.insert(parsed.spec));
                }
                Err(errors) => found.extend(errors),
            }
        }
    }
    found.extend(load_prompts(&mut specs, sources.workspaces()));
    Ok((specs, found.into_iter().map(Diagnostic::from).collect()))
}

/// Returns the file that an argument names: by its path, or by the id of the agent.
fn file(target: &Path, sources: &Sources) -> anyhow::Result<PathBuf> {
    if target.exists() {
        return Ok(target.to_owned());
    }
    let Some(id) = target.to_str().filter(|id| is_name(id)) else {
        bail!("{}: there is no such file or directory", target.display());
    };
    let names = [format!("{id}.md"), format!("{id}.agent.md"), format!("{id}.toml")];
    let paths = sources.dirs().iter().flat_map(|dir| names.iter().map(move |name| dir.join(name)));
    let mut paths = paths.filter(|path| path.is_file());
    paths.next().with_context(|| format!("{id}: there is no such file, directory or agent"))
}
