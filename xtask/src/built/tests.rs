//! Finding a program in what cargo prints.

use std::path::{Path, PathBuf};

use super::Program;

const TIMELINES: Program<'static> =
    Program { package: "tests", kind: "test", name: "it", by: ["--test", "it"] };

fn check(messages: &[&str], expected: Option<&str>) {
    let found = TIMELINES.find(&messages.join("\n"), Path::new("/w"));
    assert_eq!(found, expected.map(PathBuf::from));
}

#[test]
fn a_program_is_that_of_its_package_and_kind() {
    let library = r#"{"reason":"compiler-artifact","manifest_path":"/w/tests/Cargo.toml","target":{"name":"it","kind":["test"]},"executable":null}"#;
    let other = r#"{"reason":"compiler-artifact","manifest_path":"/w/crates/a/Cargo.toml","target":{"name":"it","kind":["test"]},"executable":"/t/it-1"}"#;
    let schema = r#"{"reason":"compiler-artifact","manifest_path":"/w/tests/Cargo.toml","target":{"name":"schema","kind":["bin"]},"executable":"/t/schema"}"#;
    let example = r#"{"reason":"compiler-artifact","manifest_path":"/w/tests/Cargo.toml","target":{"name":"it","kind":["example"]},"executable":"/t/examples/it"}"#;
    let timelines = r#"{"reason":"compiler-artifact","manifest_path":"/w/tests/Cargo.toml","target":{"name":"it","kind":["test"]},"executable":"/t/it-2"}"#;
    let finished = r#"{"reason":"build-finished","success":true}"#;

    check(&[library, other, schema, example, timelines, finished], Some("/t/it-2"));
    check(&[library, other, schema, example, finished], None);
    check(&["warning: not JSON", timelines], Some("/t/it-2"));
}
