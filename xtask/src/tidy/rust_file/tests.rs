//! One row per rule, each kept and broken.

use super::{MARKS, MAX_LINES, check as problems};

fn check(path: &str, text: &str, expected: &[&str]) {
    let found: Vec<_> = problems(path, text).iter().map(ToString::to_string).collect();
    assert_eq!(found, expected, "{path}");
}

#[test]
fn a_file_begins_with_its_purpose() {
    check("crates/a/src/b.rs", "//! B.\n", &[]);
    let missing = "crates/a/src/b.rs:1: the first line says what the file is for: `//! …`";
    for text in ["", "\n//! B.\n", "// B.\n", "/// B.\nfn b() {}\n", "//!\nuse a;\n", "use a;\n//! B.\n"] {
        check("crates/a/src/b.rs", text, &[missing]);
    }
}

#[test]
fn a_module_is_named_by_its_file() {
    check(
        "crates/a/src/b/mod.rs",
        "//! B.\n",
        &["crates/a/src/b/mod.rs:1: a module `foo` is `foo.rs`, beside the folder `foo/`"],
    );
    check("crates/a/src/b/commod.rs", "//! B.\n", &[]);
}

#[test]
fn only_tests_may_be_long() {
    let allowed = "//! B.\n".repeat(MAX_LINES);
    let long = "//! B.\n".repeat(MAX_LINES + 1);
    check("crates/a/src/b.rs", &allowed, &[]);
    check("crates/a/src/b.rs", &long, &["crates/a/src/b.rs:1: 501 lines; split it, 500 is the limit"]);
    check("crates/a/src/b/tests.rs", &long, &[]);
    check("tests/it/spawn.rs", &long, &[]);
}

#[test]
fn unfinished_work_is_found_where_it_stands() {
    for mark in MARKS {
        let text = format!("//! B.\nfn b() {{\n    {mark}\n}}\n");
        check("crates/a/src/b.rs", &text, &[&format!("crates/a/src/b.rs:3: unfinished: `{mark}`")]);
    }
    let call = format!("//! B.\n{}later)\n", MARKS[0]);
    check("crates/a/src/b.rs", &call, &[&format!("crates/a/src/b.rs:2: unfinished: `{}`", MARKS[0])]);
}

#[test]
fn part_of_a_longer_word_is_no_mark() {
    for mark in &MARKS[3..] {
        check("crates/a/src/b.rs", &format!("//! B.\nconst MAX_{mark}: u8 = {mark}S;\n"), &[]);
    }
    check("crates/a/src/b.rs", "//! B.\n// the model's todo list, which it may ignore\n", &[]);
}
