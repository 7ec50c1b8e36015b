//! Order, depth, and ignore files.

use std::fs;

use mainstem_testing::context;

use super::*;
use crate::{
    blocking::blocking,
    rig::{Rig, block_on},
};

fn walk(rig: &Rig, start: &str, depth: usize, ignores: bool) -> Vec<String> {
    let workspace = rig.workspace.clone();
    let start = if start.is_empty() { None } else { Some(start.to_owned()) };
    let cx = context("s").build();
    block_on(blocking(&cx, move |stop| {
        let start = workspace.directory(start.as_deref())?;
        let walk = if ignores {
            Walk::unignored(&workspace, stop, start)
        } else {
            Walk::all(&workspace, stop, start, depth)
        };
        walk.map(|entry| entry.map(|entry| entry.path.display().to_string())).collect()
    }))
    .unwrap()
}

#[test]
fn directories_come_before_what_is_in_them_by_name() {
    let rig = Rig::with(&[
        ("b/y", ""),
        ("b/x/z", ""),
        ("a", ""),
        ("b-c", ""),
        (".git/config", ""),
        (".hidden", ""),
    ]);
    assert_eq!(walk(&rig, "", 9, false), [".hidden", "a", "b", "b/x", "b/x/z", "b/y", "b-c"]);
    assert_eq!(walk(&rig, "", 1, false), [".hidden", "a", "b", "b-c"]);
    assert_eq!(walk(&rig, "b", 1, false), ["b/x", "b/y"]);
    assert_eq!(walk(&rig, "b/../b/x", 9, false), ["b/x/z"]);
}

#[test]
fn the_nearest_ignore_file_decides() {
    let rig = Rig::with(&[
        (".gitignore", "*.log\n/target/\n# not\n!keep.log\nsub/secret\n"),
        (".git/info/exclude", "private\n"),
        ("a.log", ""),
        ("keep.log", ""),
        ("private", ""),
        ("target/x", ""),
        ("sub/target/x", ""),
        ("sub/secret", ""),
        ("sub/.gitignore", "!a.log\n*.tmp\n"),
        ("sub/a.log", ""),
        ("sub/b.log", ""),
        ("sub/c.tmp", ""),
        ("sub/.ignore", "!c.tmp\n"),
    ]);
    let found = walk(&rig, "", 0, true);
    let expected = [
        ".gitignore",
        "keep.log",
        "sub",
        "sub/.gitignore",
        "sub/.ignore",
        "sub/a.log",
        "sub/c.tmp",
        "sub/target",
        "sub/target/x",
    ];
    assert_eq!(found, expected);
    assert_eq!(walk(&rig, "sub", 0, true), expected[3..], "the files above count");
    assert_eq!(walk(&rig, "target", 0, true), ["target/x"], "a start that is excluded is walked");
}

#[test]
fn an_ignore_file_that_leads_out_has_no_rules() {
    let rig = Rig::with(&[("a.txt", "")]);
    fs::write(rig.outside().join("rules"), "*.txt\n").unwrap();
    std::os::unix::fs::symlink("../outside/rules", rig.at(".gitignore")).unwrap();
    assert_eq!(walk(&rig, "", 0, true), [".gitignore", "a.txt"]);
}

#[test]
fn a_walk_that_is_stopped_says_so_and_ends() {
    let rig = Rig::with(&[("a", ""), ("b", "")]);
    let workspace = rig.workspace;
    let cx = context("s").build();
    let token = cx.cancellation().clone();
    let kinds: Vec<_> = block_on(blocking(&cx, move |stop| {
        let mut walk = Walk::all(&workspace, stop, Inside::root(), 9);
        let first = walk.next().is_some_and(|entry| entry.is_ok());
        token.cancel();
        Ok([first].into_iter().chain(walk.map(|entry| entry.is_ok())).collect())
    }))
    .unwrap();
    assert_eq!(kinds, [true, false]);
}

#[test]
fn what_can_not_be_read_is_told_a_few_in_full() {
    let mut failures = Failures::default();
    for name in ["a", "b", "c", "d", "e"] {
        failures.add(WorkspaceError::NotFound { path: Written::new(name) }).unwrap();
    }
    let notes = failures.into_notes();
    assert_eq!(notes.len(), 4);
    assert_eq!(notes[3], "and 2 more that could not be read");
    assert!(Failures::default().add(WorkspaceError::Cancelled).is_err());
}
