//! What a terminal gets to see of hostile text.

use proptest::prelude::*;

use super::*;

fn check(text: &str, expected: &str) {
    assert_eq!(clean(text), expected, "{text:?}");
}

#[test]
fn sequences_are_taken_out_and_text_is_kept() {
    check("plain text, ünïcödé 日本 🦀\n\tkept", "plain text, ünïcödé 日本 🦀\n\tkept");
    check("\x1b[31mred\x1b[0m", "red");
    check("\x1b[2J\x1b[1;1Hgone", "gone");
    check("\x1b]0;title\x07after", "after");
    check("\x1b]8;;https://evil\x1b\\link\x1b]8;;\x1b\\", "link");
    check("\x1b]52;c;cm0gLXJm\x07clipboard", "clipboard");
    check("\x1bPq#0~\x1b\\after", "after");
    check("\x1bcreset", "reset");
    check("\x1b7\x1b8saved", "saved");
    check("cut\x1b[", "cut");
    check("cut\x1b", "cut");
    check("overwritten\rsecret\r\n", "overwrittensecret\n");
    check("bell\x07 back\x08space \x0b\x0c \x7f", "bell backspace  ");
    check("\u{9b}31mC1\u{9d}0;t\u{9c}\u{85}", "31mC10;t");
    check("nul\0", "nul");
    check("user\u{202e}drowssap\u{202c} \u{2066}x\u{2069}", "userdrowssap x");
    check("\u{2028}\u{2029}", "");
    check("", "");
}

#[test]
fn ascii_stands_in_for_the_rest() {
    assert_eq!(ascii("a › 日…\n“b” – c’s → d"), "a > ?...\n\"b\" - c's -> d");
}

#[test]
fn escaped_json_means_the_same() {
    let text = "\u{9b}31m \u{202e} \u{7f} \n 🦀";
    let json = serde_json::to_string(text).unwrap();
    let escaped = escape_json(&json);
    assert_eq!(escaped, r#""\u009b31m \u202e \u007f \n 🦀""#);
    assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
}

#[test]
fn what_can_not_be_seen_is_shown_as_an_escape() {
    let check = |text: &str, expected: &str| assert_eq!(visible(text), expected, "{text:?}");
    check("plain, ünïcödé 日本 🦀 \"quoted\" \\", "plain, ünïcödé 日本 🦀 \"quoted\" \\");
    check("हिन्दी", "हिन्दी");
    check("ls\x1b[2K\rrm", "ls\\u{1b}[2K\\rrm");
    check("a\tb\nc", "a\\tb\\nc");
    check("l\u{200b}s\u{202e}", "l\\u{200b}s\\u{202e}");
}

proptest! {
    #[test]
    fn nothing_unsafe_is_left(text in "(\\PC|\\pC|\x1b|\\[|[0-9;]|m|\n){0,60}") {
        let cleaned = clean(&text);
        prop_assert!(!cleaned.chars().any(is_unsafe), "{cleaned:?}");
        prop_assert_eq!(clean(&cleaned), cleaned);
    }
}
