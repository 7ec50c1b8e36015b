//! `mainstem trust`

use std::path::Path;

use anyhow::{Context, anyhow, ensure};
use mainstem::policy::one_line;
use serde_json::json;

use super::find::in_agents_of;
use crate::{
    args::{Form, Trust, TrustCommand},
    config::{Files, Settings},
    exit::{Exit, Fault, OrExit},
    harness::workspace,
    print::{json, note_empty, print},
    sanitize::visible,
    trusted::{Folder, FolderPart, Folders, Store, canonical, listed},
};

pub(crate) fn run(args: &Trust) -> Result<Exit, Fault> {
    let store =
        Store::of_user().context("there is no directory for the user's state").or_exit(Exit::Config)?;
    match &args.command {
        TrustCommand::List { output } => list(&store.read().or_exit(Exit::Config)?, *output),
        TrustCommand::Add { dir, foreign } => add(&store, dir, *foreign),
        TrustCommand::Rm { dir } => remove(&store, dir),
    }
}

fn list(folders: &Folders, output: Form) -> Result<Exit, Fault> {
    match output {
        Form::Json => json(&json!(folders))?,
        Form::Text if folders.is_empty() => note_empty("trusted folders"),
        Form::Text => {
            let folder = |(name, folder): (&String, &Folder)| {
                let mut lines: Vec<_> = folder.trusted.values().map(|what| format!("  {what}\n")).collect();
                lines.sort();
                let allowed = folder
                    .allowed
                    .iter()
                    .map(|pattern| format!("  always allowed: {}\n", visible(&pattern.to_string())));
                format!("{}\n{}", one_line(name), lines.into_iter().chain(allowed).collect::<String>())
            };
            print(&folders.iter().map(folder).collect::<String>())?;
        }
    }
    Ok(Exit::Reply)
}

fn add(store: &Store, dir: &Path, foreign: bool) -> Result<Exit, Fault> {
    let parts = all_parts(dir, foreign).or_exit(Exit::Usage)?;
    store.add(&parts).or_exit(Exit::Failed)?;
    let text = match parts.is_empty() {
        true => format!("nothing in {} needs trust\n", one_line(&dir.display().to_string())),
        false => format!("trusted:\n{}", listed(&parts)),
    };
    print(&text)?;
    Ok(Exit::Reply)
}

/// Returns the parts that need trust in a folder, and in the workspace that its configuration
/// names.
fn all_parts(dir: &Path, foreign: bool) -> anyhow::Result<Vec<FolderPart>> {
    ensure!(dir.is_dir(), "{} is not a directory", dir.display());
    let files = Files::of_folder(dir)?;
    let mut workspaces = vec![dir.to_owned()];
    let named = files.beyond(Settings::default(), |_| None, |_| true);
    if named.workspace.is_some() {
        workspaces.push(workspace(&named).value);
    }
    workspaces.dedup_by_key(|workspace| canonical(workspace));
    let folder = canonical(dir);
    let of_file = files.parts().map(|part| FolderPart {
        folder: folder.clone(),
        part: part.clone(),
        is_foreign: false,
    });
    Ok(of_file.chain(workspaces.iter().flat_map(|workspace| in_agents_of(workspace, foreign))).collect())
}

fn remove(store: &Store, dir: &Path) -> Result<Exit, Fault> {
    // A server's address stands for itself.
    let name = match dir.to_str() {
        Some(text) if text.contains("://") => text.to_owned(),
        _ => canonical(dir).display().to_string(),
    };
    let Some(_) = store.remove(&name).or_exit(Exit::Failed)? else {
        let known = store.read().or_exit(Exit::Failed)?;
        let known: Vec<_> = known.keys().map(|folder| one_line(folder)).collect();
        let known = if known.is_empty() { String::new() } else { format!("; trusted: {}", known.join(", ")) };
        return Err(anyhow!("nothing of {name} was trusted or allowed{known}")).or_exit(Exit::Usage);
    };
    print(&format!("no longer trusted, and nothing is always allowed there: {name}\n"))?;
    Ok(Exit::Reply)
}
