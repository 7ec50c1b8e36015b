//! What an edit changes, what it leaves, and the errors of edits that do not fit.

use proptest::prelude::*;

use super::*;

fn edit(content: &[u8], old: &str, new: &str, replace_all: bool) -> Result<Edited, Mismatch> {
    Edit { old, new, replace_all }.apply(content)
}

#[test]
fn text_is_replaced_where_it_occurs_once() {
    #[track_caller]
    fn check(content: &str, old: &str, new: &str, expected: &str, line: usize) {
        let edited = edit(content.as_bytes(), old, new, false).unwrap();
        assert_eq!((String::from_utf8(edited.content).unwrap(), edited.lines), (expected.into(), vec![line]));
    }
    check("a b c", "b", "x", "a x c", 1);
    check("a\nb\nc", "b\n", "", "a\nc", 2);
    check("a\nb\nc", "c", "c\n", "a\nb\nc\n", 3);
    check(
        "a\r\nb\r\nc\r\n",
        "b\nc",
        "x\ny\nz",
        "a\r\nx\r\ny\r\nz\r\nc\r\n".replace("z\r\nc", "z").as_str(),
        2,
    );
    check("a\r\nb\r\n", "a", "a\nx", "a\r\nx\r\nb\r\n", 1);
    check("a\r\nb\r\n", "a\r\n", "x\r\n", "x\r\nb\r\n", 1);
    check("a\r\nb\nc\n", "b\n", "x\ny\n", "a\r\nx\ny\nc\n", 2);
    check("a\r\nb\nc\n", "a\nb", "x\nb", "x\r\nb\nc\n", 1);
    check("\u{feff}a", "a", "b", "\u{feff}b", 1);
}

#[test]
fn bytes_that_are_no_text_stay() {
    let edited = edit(b"\xFF a \x00\xFE", "a", "\u{e9}", false).unwrap();
    assert_eq!(edited.content, b"\xFF \xC3\xA9 \x00\xFE");
}

#[test]
fn every_occurrence_is_replaced_when_asked() {
    let edited = edit(b"x\nx\n\nx", "x", "yy", true).unwrap();
    assert_eq!((edited.content, edited.lines), (b"yy\nyy\n\nyy".to_vec(), vec![1, 2, 4]));
    assert_eq!(edit(b"aaa", "aa", "b", true).unwrap().content, b"ba");
}

#[test]
fn an_edit_that_does_not_fit_says_why() {
    #[track_caller]
    fn check(content: &str, old: &str, expected: &str) {
        let error = edit(content.as_bytes(), old, "new", false).unwrap_err().to_string();
        assert_eq!(error, expected);
    }
    check("a", "", "old is empty; give the text to replace, or use write_file for a whole file");
    check("new", "new", "old and new are the same, so there is nothing to do");
    let many = "add lines around it until it occurs once, or set replace_all";
    check("x\ny\nx", "x", &format!("old occurs 2 times (lines 1, 3); {many}"));
    check("aaa", "aa", &format!("old occurs 2 times (lines 1, 1); {many}"));
    check(
        &"x\n".repeat(12),
        "x",
        &format!("old occurs 12 times (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …); {many}"),
    );
    let none = |hint: &str| format!("old does not occur; {hint}");
    check(
        "fn main() {\n    run();\n}",
        "let y",
        &none("nothing in the file is like it; read the file first"),
    );
    check(
        "a\n\n\tlet x = 1;",
        "  let x = 1;",
        &none("line 3 differs in white space only: \"\\tlet x = 1;\""),
    );
    check("a\nlet count = 1;", "let cuont = 1;", &none("the nearest is line 2: \"let count = 1;\""));
    check("let a = 1;\nlet a = 2;", "let a = 2;x", &none("the nearest is line 2: \"let a = 2;\""));
    check(
        "fn f() {\n    one();\n}",
        "fn f() {\n    two();\n}",
        &none("it begins as line 1 does, but then line 2 is \"    one();\""),
    );
    check("  f()\nf()\nx", "f()\ny", &none("it begins as line 2 does, but then line 3 is \"x\""));
    check(
        "f()\n",
        "1\tf()\n",
        &none("leave out the line numbers and tabs that read_file puts before the lines"),
    );
    check("f()\n", "\n \n", &none("it is only white space"));
    check("", "x", &none("nothing in the file is like it; read the file first"));
}

#[test]
fn a_hint_for_a_large_file_takes_no_time() {
    let content = "let something = another_thing(with, arguments);\n".repeat(400_000);
    let hint = edit(content.as_bytes(), "let smoething = another_thing(with, arguments);!", "", false);
    assert!(hint.unwrap_err().to_string().contains("the nearest is line 1:"));
}

proptest! {
    #[test]
    fn all_else_stays(before in "[ab\r\n é]{0,20}", after in "[ab\r\n é]{0,20}", new in "[xyz]{0,5}") {
        let content = format!("{before}OLD{after}");
        let edited = edit(content.as_bytes(), "OLD", &new, false).unwrap();
        prop_assert_eq!(edited.content, format!("{before}{new}{after}").into_bytes());
        prop_assert_eq!(edited.lines, vec![before.matches('\n').count() + 1]);
    }

    #[test]
    fn crlf_stays_crlf(lines in prop::collection::vec("[ab]{0,3}", 1..6), at in 0..6_usize, is_ended: bool) {
        let mut content = lines.join("\r\n") + if is_ended { "\r\n" } else { "" };
        let at = at % lines.len();
        let place: usize = lines[..at].iter().map(|line| line.len() + 2).sum();
        content.insert_str(place, "ONE\r\nTWO");
        let edited = edit(content.as_bytes(), "ONE\nTWO", "x\ny\nz", false).unwrap().content;
        prop_assert_eq!(String::from_utf8(edited).unwrap(), content.replace("ONE\r\nTWO", "x\r\ny\r\nz"));
    }

    #[test]
    fn any_bytes_and_any_text_do(content: Vec<u8>, old in ".{0,4}", new in ".{0,4}", replace_all: bool) {
        if let Ok(edited) = edit(&content, &old, &new, replace_all) {
            prop_assert!(!edited.lines.is_empty());
        }
    }
}
