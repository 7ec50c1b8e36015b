//! The comparison with the tree, and writing.

use std::fs;

use super::{Files, compare, owned, read, write};
use crate::tree;

fn files(rows: &[(&str, &str)]) -> Files {
    rows.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
}

fn check(fresh: &[(&str, &str)], kept: &[(&str, &str)], expected: &[&str]) {
    let found: Vec<_> = compare(&files(fresh), &files(kept)).iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
}

#[test]
fn every_difference_is_named() {
    let table = ("docs/events.md", "| a |\n");
    check(&[table], &[table], &[]);
    check(&[table], &[], &["docs/events.md:1: is missing"]);
    check(&[], &[table], &["docs/events.md:1: is generated no more"]);
    let changed = ("docs/events.md", "| a |");
    check(&[table], &[changed], &["docs/events.md:1: differs from what the types say"]);
}

#[test]
fn writing_makes_the_tree_equal_and_spares_what_is_not_generated() {
    let tree = tempfile::tempdir().unwrap();
    let root = tree.path();
    fs::create_dir_all(root.join("docs/schema")).unwrap();
    fs::write(root.join("docs/layers.md"), "by hand").unwrap();
    fs::write(root.join("docs/schema/old.json"), "{}").unwrap();

    let fresh = files(&[("docs/events.md", "table"), ("docs/schema/event.json", "{}")]);
    let kept = read(root, owned(root).unwrap()).unwrap();
    write(root, &fresh, &kept).unwrap();

    assert_eq!(tree::files(root).unwrap(), ["docs/events.md", "docs/layers.md", "docs/schema/event.json"]);
    let paths = fresh.keys().cloned().chain(owned(root).unwrap());
    assert_eq!(compare(&fresh, &read(root, paths).unwrap()), []);
}
