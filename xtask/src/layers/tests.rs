//! How crates are counted, and which rows are refused.

use super::{check, count, layers};

const PAGE: &str = "| layer | crates | seconds |\n|---|---|---|\n| `mainstem-sse` | 7 | 3 |\n";

#[test]
fn a_crate_counts_once_and_a_second_version_too() {
    assert_eq!(
        count("mainstem-sse v0.1.0 (/w)\nbytes v1.0.0\nsyn v1.0.0\nsyn v2.0.0\nbytes v1.0.0 (*)\n\n"),
        4
    );
}

#[test]
fn a_row_that_is_missing_or_wrong_is_a_problem() {
    let found = |layer, crates| check(PAGE, layer, crates).map(|problem| problem.to_string());
    assert_eq!(found("sse", 7), None);
    assert_eq!(found("sse", 8).as_deref(), Some("docs/layers.md:3: mainstem-sse brings 8 crates"));
    assert_eq!(
        found("spec", 9).as_deref(),
        Some("docs/layers.md:1: mainstem-spec has no row; it brings 9 crates")
    );
}

#[test]
fn each_folder_with_a_package_is_a_layer() {
    let files = ["tests/layers/sse/Cargo.toml", "tests/layers/sse/src/main.rs", "tests/Cargo.toml"];
    assert_eq!(layers(&files.map(String::from)), ["sse"]);
}
