//! A part of a folder's files that needs trust, and its text for the user.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use mainstem::policy::{Part, one_line};

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

/// Returns the parts by folder, a line each.
pub(crate) fn listed(parts: &[FolderPart]) -> String {
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
pub(crate) fn remedy(parts: &[FolderPart]) -> String {
    let mut folders = BTreeMap::new();
    parts.iter().for_each(|found| *folders.entry(&found.folder).or_default() |= found.is_foreign);
    let commands: Vec<_> =
        folders.into_iter().map(|(folder, foreign)| format!("`{}`", trusting(folder, foreign))).collect();
    format!("{} trusts it; --trust does for one command", commands.join(" and "))
}

/// Returns a path, quoted for a shell.
fn as_argument(path: &Path) -> String {
    let text = one_line(&path.display().to_string());
    let is_plain = |c: char| c.is_alphanumeric() || "/._-".contains(c);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
