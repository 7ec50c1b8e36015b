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

/// The last line after the notes.
const HINT: &str =
    "notes on files of other products are shown once; `mainstem agents validate --foreign` shows them again";

/// The largest record of what was shown, in bytes. A larger one is begun again.
const MAX_BYTES: u64 = 64 << 10;

/// What was found in the files of agents.
pub(crate) struct Findings {
    /// Without the notes on files of other products that were shown before for this workspace.
    pub(crate) new: Vec<String>,
    pub(crate) all: Vec<String>,
    /// The line that records the notes.
    line: Option<String>,
}

impl Findings {
    pub(crate) fn of(harness: &Harness, workspace: &Path) -> Self {
        let found = harness.diagnostics();
        let all: Vec<_> = found.iter().map(ToString::to_string).collect();
        let is_note = found.iter().map(is_of_other_product);
        let (notes, others): (Vec<_>, Vec<_>) = all.iter().cloned().zip(is_note).partition(|(_, is)| *is);
        let text = |notes: Vec<(String, bool)>| notes.into_iter().map(|(text, _)| text).collect::<Vec<_>>();
        let (mut new, others) = (text(notes), text(others));
        let line = (!new.is_empty()).then(|| line(workspace, &new));
        let line = line.filter(|line| !file().is_some_and(|file| has(&file, line)));
        match line {
            Some(_) => new.push(HINT.to_owned()),
            None => new.clear(),
        }
        new.extend(others);
        Self { new, all, line }
    }

    /// Records that the notes were shown. If that fails, they are shown again.
    pub(crate) fn record(&self) {
        if let Some((line, file)) = self.line.as_ref().zip(file()) {
            let _ = add(&file, line);
        }
    }
}

fn is_of_other_product(found: &Diagnostic) -> bool {
    // subagents/NAME.md, skills/NAME/SKILL.md
    let is_ours = |file: &Path| {
        let mut folders = file.ancestors().skip(1).take(2).filter_map(Path::file_name);
        folders.any(|name| name == "subagents" || name == "skills")
    };
    found.code() == Code::Interpreted && found.file().is_some_and(|file| !is_ours(file))
}

fn line(workspace: &Path, notes: &[String]) -> String {
    let mut hasher = DefaultHasher::new();
    (workspace, notes).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn has(file: &Path, line: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|lines| lines.lines().any(|one| one == line))
}

fn add(file: &Path, line: &str) -> io::Result<()> {
    file.parent().map_or(Ok(()), fs::create_dir_all)?;
    let is_full = fs::metadata(file).is_ok_and(|file| file.len() > MAX_BYTES);
    let mut out =
        OpenOptions::new().create(true).write(true).append(!is_full).truncate(is_full).open(file)?;
    out.write_all(format!("{line}\n").as_bytes())
}

/// `mainstem/shown-notes` in the user's state directory.
fn file() -> Option<PathBuf> {
    let dirs = etcetera::choose_base_strategy().ok()?;
    Some(dirs.state_dir().unwrap_or_else(|| dirs.data_dir()).join("mainstem").join("shown-notes"))
}

#[cfg(test)]
mod tests {
    //! The record of what was shown.

    use super::*;

    #[test]
    fn a_record_has_its_lines_and_is_begun_again_when_it_is_large() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a/notes");
        assert!(!has(&file, "1"));
        ["1", "2"].iter().for_each(|line| add(&file, line).unwrap());
        assert!(has(&file, "1") && has(&file, "2") && !has(&file, "3"));
        fs::write(&file, "x\n".repeat(40_000)).unwrap();
        add(&file, "1").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "1\n");
        assert!(add(folder.path(), "1").is_err());
    }
}
