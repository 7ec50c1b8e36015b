//! `cargo xtask tidy`: rules of the tree that the compiler doesn't hold. Each check is a pure
//! function from paths and text to problems; all problems are listed.

mod code_map;
mod decisions;
mod edges;
mod limits;
mod packages;
mod rust_file;
mod words;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::problem::{Problem, report};
use crate::{snapshots, tree};

pub(crate) fn run(root: &Path) -> Result<()> {
    report(&check(root)?, "the rules are in xtask/src/tidy and CONTRIBUTING.md")
}

fn check(root: &Path) -> Result<Vec<Problem>> {
    let files = tree::files(root)?;
    let packages = packages::read(root)?;
    // A missing file lacks every crate, which the check says.
    let architecture = fs::read_to_string(root.join(code_map::FILE)).unwrap_or_default();

    let mut problems = edges::check(&packages);
    problems.extend(code_map::check(&architecture, &packages, &files));
    let changes = fs::read_to_string(root.join(code_map::CHANGES)).context(code_map::CHANGES)?;
    problems.extend(code_map::names(code_map::CHANGES, &changes, &packages, &files));
    problems.extend(snapshots::pending(&files));
    problems.extend(decisions::check(&files));
    for path in files.iter().filter(|path| decisions::is_in_folder(path)) {
        let text = fs::read_to_string(root.join(path)).with_context(|| path.clone())?;
        problems.extend(decisions::cited(path, &text, &files));
    }
    let mut functions = BTreeSet::new();
    let mut words = words::Words::default();
    for path in files.iter().filter(|path| path.ends_with(".rs")) {
        let text = fs::read_to_string(root.join(path)).with_context(|| path.clone())?;
        problems.extend(rust_file::check(path, &text));
        functions.extend(limits::functions(&text));
        words.add(path, &text);
    }
    problems.extend(words.check());
    // Whether it is there is `cargo xtask schema`'s to say.
    let page = fs::read_to_string(root.join(limits::FILE)).unwrap_or_default();
    problems.extend(limits::check(&page, &functions));
    Ok(problems)
}
