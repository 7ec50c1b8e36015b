//! Crates that run while others are compiled.

use std::collections::BTreeSet;

use super::{HEAD, compare, running};

const METADATA: &str = r#"{"packages": [
    {"name": "ours", "version": "0.1.0", "source": null, "targets": [{"kind": ["custom-build"]}]},
    {"name": "plain", "version": "1.0.0", "source": "registry", "targets": [{"kind": ["lib"]}]},
    {"name": "derive", "version": "2.0.0", "source": "registry", "targets": [{"kind": ["proc-macro"]}]},
    {"name": "native", "version": "3.0.0", "source": "registry", "targets": [{"kind": ["lib"]}, {"kind": ["custom-build"]}]}
]}"#;

fn found() -> BTreeSet<String> {
    running(METADATA).unwrap()
}

fn problems(list: &str) -> Vec<String> {
    compare(&found(), &format!("{HEAD}{list}")).iter().map(ToString::to_string).collect()
}

#[test]
fn build_scripts_and_macros_of_others_are_found() {
    assert_eq!(
        found().into_iter().collect::<Vec<_>>(),
        ["build-script native 3.0.0", "proc-macro derive 2.0.0"]
    );
}

#[test]
fn a_crate_or_version_that_nobody_has_read_is_a_problem_and_so_is_one_that_is_left_over() {
    assert!(problems("build-script native 3.0.0\nproc-macro derive 2.0.0\n").is_empty());
    let new =
        "docs/supply/compile-time.txt:1: `proc-macro derive 2.0.0` runs while we compile, and is not listed";
    assert_eq!(problems("build-script native 3.0.0\n"), [new]);
    let gone = "docs/supply/compile-time.txt:4: `proc-macro derive 1.9.0` is no longer compiled";
    assert_eq!(problems("build-script native 3.0.0\nproc-macro derive 1.9.0\n"), [new, gone]);
}
