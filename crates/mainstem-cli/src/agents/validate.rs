//! `mainstem agents validate`

use std::{
    io::{self, Write},
    path::Path,
};

use anyhow::anyhow;
use mainstem::spec::{Severity, SpecError, load_dir, load_file};
use serde_json::{Value, json};

use super::{counted, json, print, sources};
use crate::{
    args::{Form, Validate},
    exit::{Exit, Fault, OrExit},
    terminal::Terminal,
};

pub(super) fn validate(args: &Validate, workspace: &Path, terminal: Terminal) -> Result<Exit, Fault> {
    let mut found = Vec::new();
    if args.paths.is_empty() {
        let sources = sources(workspace, &args.listing);
        found = sources.load().1;
        found.extend(sources.load_skills().1);
    }
    for path in &args.paths {
        found.extend(of_path(path)?);
    }
    match args.listing.output {
        Form::Json => json(&found.iter().map(object).collect(), terminal)?,
        Form::Text => print(&found.iter().map(|found| format!("{found}\n")).collect::<String>(), terminal)?,
    }
    let count = |severity| found.iter().filter(|found| found.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let _ = writeln!(io::stderr(), "{}, {}", counted(errors, "error"), counted(warnings, "warning"));
    let passes = errors == 0 && (warnings == 0 || !args.strict);
    Ok(if passes { Exit::Reply } else { Exit::Failed })
}

fn of_path(path: &Path) -> Result<Vec<SpecError>, Fault> {
    if path.is_dir() {
        return Ok(load_dir(path).1);
    }
    if !path.exists() {
        return Err(anyhow!("{}: there is no such file or directory", path.display())).or_exit(Exit::Usage);
    }
    Ok(load_file(path).map_or_else(|found| found, |parsed| parsed.warnings))
}

fn object(found: &SpecError) -> Value {
    json!({
        "file": found.path,
        "line": found.position.map(|at| at.line),
        "column": found.position.map(|at| at.column),
        "severity": found.severity.to_string(),
        "key": found.key,
        "message": found.message,
        "suggestion": found.suggestion,
    })
}
