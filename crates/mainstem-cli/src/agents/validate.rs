//! `mainstem agents validate`

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use mainstem::{
    Harness, HarnessBuilder,
    declarations::{Diagnostic, Severity},
    prelude::ScriptedModel,
    spec::{SpecSet, load_dir, load_file, load_prompts},
};
use serde_json::json;

use crate::{
    args::{Form, Validate},
    config::{Config, Setting, var},
    exit::{Exit, Fault, OrExit},
    harness::{furnish, in_words},
    model,
    print::{counted, json, print},
};

pub(super) fn validate(
    args: &Validate,
    config: &Config,
    workspace: &Setting<PathBuf>,
) -> Result<Exit, Fault> {
    let harness = harness(args, config, &workspace.value).or_exit(Exit::Config)?;
    let found = match &args.paths[..] {
        [] => harness.check().map_err(|error| in_words(error, workspace)).or_exit(Exit::Config)?,
        paths => {
            let (specs, mut found) = of_paths(paths, &workspace.value)?;
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

/// Returns the harness that `mainstem run` would build, with a model that is never called.
fn harness(args: &Validate, config: &Config, workspace: &Path) -> anyhow::Result<HarnessBuilder> {
    let harness = Harness::builder("main", ScriptedModel::new())
        .with_registry(model::registry(&config.settings, 0.0, var)?)
        .with_workspace(workspace);
    furnish(if args.listing.foreign { harness.with_foreign_agents(true) } else { harness }, config)
}

/// Returns the agents of these files and directories, and the errors of the files.
fn of_paths(paths: &[PathBuf], workspace: &Path) -> Result<(SpecSet, Vec<Diagnostic>), Fault> {
    let (mut specs, mut found) = (SpecSet::new(), Vec::new());
    for path in paths {
        if path.is_dir() {
            let (more, errors) = load_dir(path);
            found.extend(errors);
            found.extend(specs.merge(more));
        } else if path.exists() {
            match load_file(path) {
                Ok(parsed) => {
                    found.extend(parsed.warnings);
                    found.extend(specs.insert(parsed.spec));
                }
                Err(errors) => found.extend(errors),
            }
        } else {
            let error = anyhow!("{}: there is no such file or directory", path.display());
            return Err(error).or_exit(Exit::Usage);
        }
    }
    found.extend(load_prompts(&mut specs, &[workspace.to_owned()]));
    Ok((specs, found.into_iter().map(Diagnostic::from).collect()))
}
