//! Checks that the tests that `docs/compat.md` names exist.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
};

/// Returns the names of all functions in the sources of the workspace.
fn functions() -> HashSet<String> {
    fn files(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") {
                files(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut sources = Vec::new();
    ["crates", "tests"].iter().for_each(|part| files(&root.join(part), &mut sources));
    let text: String = sources.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let names = text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
    names.map(str::to_owned).collect()
}

#[test]
fn every_behaviour_is_shown_by_a_test_that_exists() {
    let page = include_str!("../../docs/compat.md");
    let functions = functions();
    let rows: Vec<Vec<_>> = page
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| #") && !line.starts_with("| gap"))
        .map(|line| line.trim_matches('|').split(" | ").map(|cell| cell.trim_matches([' ', '|'])).collect())
        .collect();
    assert!(rows.len() > 90, "{}", rows.len());
    for row in &rows {
        let (here, shown) = (row[row.len() - 2], row[row.len() - 1]);
        let names: Vec<_> = shown.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty() || here.starts_with("later"), "{row:?} is shown by nothing");
        names.iter().for_each(|name| assert!(functions.contains(*name), "there is no test {name}: {row:?}"));
    }
}
