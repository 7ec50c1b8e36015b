//! Where the front matter is, and what breaks it.

use super::*;

#[track_caller]
fn check(text: &str, yaml: &str, body: &str) {
    assert_eq!(split(text), Ok(FrontMatter { yaml, body }), "{text:?}");
}

#[test]
fn the_delimiter_is_a_line() {
    check("---\na: 1\n---\nbody\n", "---\na: 1\n", "body\n");
    check("---\na: 1\n---", "---\na: 1\n", "");
    check("---\n---\n", "---\n", "");
    check(
        "---\na: x --- y\nb: |\n  ---\n--- c\n----\n---\n",
        "---\na: x --- y\nb: |\n  ---\n--- c\n----\n",
        "",
    );
    check("---\n---\na\n---\nb", "---\n", "a\n---\nb");
}

#[test]
fn byte_order_mark_crlf_and_blank_lines_are_tolerated() {
    check("\u{feff}---\na: 1\n---\nb", "---\na: 1\n", "b");
    check("---\r\na: 1\r\n---\r\nb\r\n", "---\r\na: 1\r\n", "b\r\n");
    check("\n \n---  \na: 1\n---\t\nb", "\n \n---  \na: 1\n", "b");
}

#[test]
fn both_delimiters_are_needed() {
    let check = |text: &str, expected: &str| {
        let message = split(text).unwrap_err().message;
        assert!(message.contains(expected), "{text:?} gave {message}");
    };
    for text in ["", "\n\n", "body", "a: 1\n---\n", " ---\na: 1\n---\n", "----\n---\n", "\u{feff}"] {
        check(text, "is missing");
    }
    for text in ["---", "---\n", "---\na: 1\n ---\n", "---\na: 1\n--- b\n"] {
        check(text, "is not closed");
    }
}
