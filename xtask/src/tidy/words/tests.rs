//! What is counted, and how the numbers are compared.

use super::*;

#[test]
fn a_form_is_found_as_a_word() {
    for (line, expected) in [
        (concat!("// Nob", "ody waits."), true),
        (concat!("let nob", "ody = 1;"), true),
        (concat!("let nob", "ody_there = 1;"), false),
        (concat!("// It is at ", "work."), true),
        (concat!("// at ", "workplaces"), false),
        ("// Every parked producer is woken.", false),
    ] {
        assert_eq!(has_form(line), expected, "{line}");
    }
}

#[test]
fn a_public_name_has_no_word_of_a_scene() {
    for (line, expected) in [
        ("pub struct Crew {", true),
        ("    pub fn with_crew(mut self) -> Self {", true),
        ("pub async fn keeper()", true),
        ("pub enum KeptBytes", true),
        ("pub fn concrete()", false),
        ("fn crew()", false),
        ("pub(crate) struct Crew;", false),
        ("pub use crate::Crew;", false),
    ] {
        assert_eq!(public_name(line).is_some_and(has_banned_word), expected, "{line}");
    }
}

#[test]
fn numbers_only_fall() {
    #[track_caller]
    fn check(text: &str, left: &str, expected: &[&str]) {
        let mut words = Words::default();
        words.add("crates/a/src/b.rs", text);
        let problems: Vec<_> = words.compare(&parse(left)).iter().map(ToString::to_string).collect();
        assert_eq!(problems, expected);
    }
    let wide = format!("//! B.\n// {}\n", "x".repeat(WIDTH));
    check("//! B.\n", "crates/a 0 0 0", &[]);
    check("//! B.\n", "", &[]);
    check(&wide, "# a comment\ncrates/a 0 0 1\n", &[]);
    let one_more = "crates/a/src/b.rs:2: crates/a has 1 comment lines of more than 100 columns, and had 0; the last is here";
    check(&wide, "", &[one_more]);
    check(&format!("//! B.\n//! [c]: https://{}\n", "x".repeat(WIDTH)), "", &[]);
    let lower = "xtask/src/tidy/words/left.txt:1: crates/a has 0 comment lines of more than 100 columns left; lower the number from 2";
    check("//! B.\n", "crates/a 0 0 2", &[lower]);
}
