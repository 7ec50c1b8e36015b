//! Patterns and the files that they match.

use serde_json::json;

use crate::rig::Rig;

#[test]
fn names_match_everywhere_and_paths_below_the_directory() {
    let rig = Rig::with(&[
        (".gitignore", "target/\n"),
        ("main.rs", ""),
        ("src/lib.rs", ""),
        ("src/deep/mod.rs", ""),
        ("src/app.ts", ""),
        (".github/ci.yml", ""),
        ("target/out.rs", ""),
        (".git/HEAD", ""),
    ]);
    #[track_caller]
    fn check(rig: &Rig, pattern: &str, path: &str, expected: &[&str]) {
        let found = rig.ok("glob_files", json!({ "pattern": pattern, "path": path }));
        let expected = if expected.is_empty() { "[no file matches]".to_owned() } else { expected.join("\n") };
        assert_eq!(found, expected);
    }
    check(&rig, "*.rs", ".", &["main.rs", "src/deep/mod.rs", "src/lib.rs"]);
    check(&rig, "*.rs", "src", &["src/deep/mod.rs", "src/lib.rs"]);
    check(&rig, "./*.rs", ".", &["main.rs", "src/deep/mod.rs", "src/lib.rs"]);
    check(&rig, "src/*.rs", ".", &["src/lib.rs"]);
    check(&rig, "**/*.rs", "src", &["src/deep/mod.rs", "src/lib.rs"]);
    check(&rig, "deep/*", "src", &["src/deep/mod.rs"]);
    check(&rig, "src/**/*.{ts,rs}", ".", &["src/app.ts", "src/deep/mod.rs", "src/lib.rs"]);
    check(&rig, "ci.*", ".", &[".github/ci.yml"]);
    check(&rig, "HEAD", ".", &[]);
    check(&rig, "*.py", ".", &[]);
    check(&rig, "*.rs", "target", &["target/out.rs"]);
}

#[test]
fn a_bad_pattern_is_an_error() {
    let error = Rig::new().err("glob_files", json!({ "pattern": "src/[a" }));
    assert_eq!(
        error,
        "pattern is no glob: error parsing glob 'src/[a': unclosed character class; missing ']'"
    );
}

#[test]
fn many_files_are_counted() {
    let rig = Rig::new();
    (0..1003).for_each(|number| rig.write(&format!("f{number:04}"), ""));
    let found = rig.ok("glob_files", json!({ "pattern": "f*" }));
    assert!(found.ends_with("\nf0999\n[and 3 more; give a narrower pattern or a path]"), "{found}");
}
