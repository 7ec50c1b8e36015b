//! A part of a folder's files that needs trust, and its text for the user.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use mainstem::{
    policy::{Part, one_line},
    spec::{AgentSpec, Origin, Sources},
    subagent::trust::parts,
};

use super::Reads;
use crate::{config::Settings, harness::workspace};

/// A part, and its folder, without links.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FolderPart {
    pub(crate) folder: PathBuf,
    pub(crate) part: Part,
    /// Whether only `--foreign` reads its file.
    pub(crate) is_foreign: bool,
}

impl FolderPart {
    /// Returns the command that trusts its folder.
    pub(crate) fn command(&self) -> String {
        trusting(&self.folder, self.is_foreign)
    }
}

fn trusting(folder: &Path, is_foreign: bool) -> String {
    let foreign = if is_foreign { "--foreign " } else { "" };
    format!("mainstem trust add {foreign}{}", as_argument(folder))
}

/// Returns the folder's absolute path without links; a missing folder as it is.
pub(super) fn canonical(folder: &Path) -> PathBuf {
    folder.canonicalize().or_else(|_| std::path::absolute(folder)).unwrap_or_else(|_| folder.to_owned())
}

/// Returns the parts of agents' files that apply to a run with these settings.
pub(super) fn of_agents(settings: &Settings, reads: Reads) -> Vec<FolderPart> {
    if reads == Reads::NoAgents {
        return Vec::new();
    }
    let mut parts = in_agents_of(&workspace(settings).value, reads == Reads::Foreign);
    // A declared server is an error of its agent unless `agent_servers` allows it.
    let may_declare = settings.agent_servers.is_on();
    parts.retain(|found| may_declare || !found.part.key().starts_with("mcp_servers."));
    parts
}

/// Returns the parts of agents' files in a workspace.
pub(super) fn in_agents_of(workspace: &Path, foreign: bool) -> Vec<FolderPart> {
    let ours = Sources::of_workspace(workspace);
    let sources = if foreign { ours.clone().with_other_products_of(workspace) } else { ours.clone() };
    let (specs, _) = sources.load();
    let folder = canonical(workspace);
    let of_spec = |spec: &AgentSpec| {
        let is_ours = |path: &Path| ours.dirs().iter().any(|dir| path.starts_with(dir));
        let is_foreign = matches!(&spec.origin, Origin::File(path) if !is_ours(path));
        let folder = folder.clone();
        parts(spec, workspace).into_iter().map(move |part| FolderPart {
            folder: folder.clone(),
            part,
            is_foreign,
        })
    };
    specs.iter().flat_map(of_spec).collect()
}

/// Returns the parts by folder, a line each.
pub(super) fn listed(parts: &[FolderPart]) -> String {
    let mut text = String::new();
    for (index, found) in parts.iter().enumerate() {
        if index == 0 || parts[index - 1].folder != found.folder {
            text.push_str(&format!("  {}\n", one_line(&found.folder.display().to_string())));
        }
        found.part.lines().for_each(|line| text.push_str(&format!("    {line}\n")));
    }
    text
}

/// Returns the commands that would trust these parts.
pub(super) fn remedy(parts: &[FolderPart]) -> String {
    let mut folders = BTreeMap::new();
    parts.iter().for_each(|found| *folders.entry(&found.folder).or_default() |= found.is_foreign);
    let commands: Vec<_> =
        folders.into_iter().map(|(folder, foreign)| format!("`{}`", trusting(folder, foreign))).collect();
    format!("{} trusts it; --trust or MAINSTEM_TRUST=1 does for one command", commands.join(" and "))
}

/// Returns a path, quoted for a shell.
fn as_argument(path: &Path) -> String {
    let text = one_line(&path.display().to_string());
    let is_plain = |c: char| c.is_alphanumeric() || "/._-".contains(c);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
