//! Finding the timeline binary in what cargo prints.

use std::path::{Path, PathBuf};

use super::find_binary;

fn check(messages: &[&str], expected: Option<&str>) {
    let found = find_binary(&messages.join("\n"), Path::new("/w/tests/Cargo.toml"));
    assert_eq!(found, expected.map(PathBuf::from));
}

#[test]
fn the_binary_is_the_one_of_the_tests_package() {
    let library = r#"{"reason":"compiler-artifact","manifest_path":"/w/tests/Cargo.toml","target":{"name":"it"},"executable":null}"#;
    let other = r#"{"reason":"compiler-artifact","manifest_path":"/w/crates/a/Cargo.toml","target":{"name":"it"},"executable":"/t/it-1"}"#;
    let schema = r#"{"reason":"compiler-artifact","manifest_path":"/w/tests/Cargo.toml","target":{"name":"schema"},"executable":"/t/schema"}"#;
    let timelines = r#"{"reason":"compiler-artifact","manifest_path":"/w/tests/Cargo.toml","target":{"name":"it"},"executable":"/t/it-2"}"#;
    let finished = r#"{"reason":"build-finished","success":true}"#;

    check(&[library, other, schema, timelines, finished], Some("/t/it-2"));
    check(&[library, other, schema, finished], None);
    check(&["warning: not JSON", timelines], Some("/t/it-2"));
}
