//! Notes that are shown once: on files of other products, which are right there as they are.

use std::{
    fs::{self, OpenOptions},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use etcetera::BaseStrategy as _;
use mainstem::{
    Harness,
    declarations::{Code, Diagnostic},
};

/// Said behind the notes.
const ONCE: &str =
    "notes on files of other products are shown once; `mainstem agents validate --foreign` shows them again";

/// The largest file of what was told, in bytes. A larger one is begun again.
const MAX_BYTES: u64 = 64 << 10;

/// Returns what was found in the files of agents, without the notes on files of other products if
/// these were returned before for this workspace.
pub(crate) fn news(harness: &Harness, workspace: &Path) -> Vec<String> {
    let (notes, others): (Vec<_>, Vec<_>) = harness.diagnostics().into_iter().partition(is_of_other_product);
    let text = |found: Vec<Diagnostic>| found.iter().map(ToString::to_string).collect::<Vec<_>>();
    let (notes, others) = (text(notes), text(others));
    let is_new = !notes.is_empty() && is_new(workspace, &notes);
    let notes = notes.into_iter().chain([ONCE.to_owned()]).filter(|_| is_new);
    notes.chain(others).collect()
}

fn is_of_other_product(found: &Diagnostic) -> bool {
    let is_ours = |file: &Path| {
        file.components().any(|part| matches!(part.as_os_str().to_str(), Some("subagents" | "skills")))
    };
    found.code() == Code::Interpreted && found.file().is_some_and(|file| !is_ours(file))
}

/// Returns `true` the first time, and if the file of what was told can't be used.
fn is_new(workspace: &Path, notes: &[String]) -> bool {
    let mut hasher = DefaultHasher::new();
    (workspace, notes).hash(&mut hasher);
    let line = format!("{:016x}", hasher.finish());
    file().is_none_or(|file| tell(&file, &line).unwrap_or(true))
}

/// Adds a line; returns `false` if the file has it.
fn tell(file: &Path, line: &str) -> io::Result<bool> {
    if fs::read_to_string(file).is_ok_and(|told| told.lines().any(|told| told == line)) {
        return Ok(false);
    }
    file.parent().map_or(Ok(()), fs::create_dir_all)?;
    let is_full = fs::metadata(file).is_ok_and(|file| file.len() > MAX_BYTES);
    let mut out =
        OpenOptions::new().create(true).write(true).append(!is_full).truncate(is_full).open(file)?;
    out.write_all(format!("{line}\n").as_bytes())?;
    Ok(true)
}

/// `mainstem/told` in the user's state directory.
fn file() -> Option<PathBuf> {
    let dirs = etcetera::choose_base_strategy().ok()?;
    Some(dirs.state_dir().unwrap_or_else(|| dirs.data_dir()).join("mainstem").join("told"))
}

#[cfg(test)]
mod tests {
    //! The file of what was told.

    use super::*;

    #[test]
    fn each_line_is_new_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a/told");
        let told = ["1", "2", "1", "2", "3"].map(|line| tell(&file, line).unwrap());
        assert_eq!(told, [true, true, false, false, true]);
        fs::write(&file, "x\n".repeat(40_000)).unwrap();
        assert!(tell(&file, "1").unwrap() && fs::read_to_string(&file).unwrap() == "1\n");
        assert!(tell(folder.path(), "1").is_err());
    }
}
