//! Wildcards, compared with a naive matcher.

use proptest::prelude::*;

use super::{is_everything, matches};

#[test]
fn globs() {
    let check = |glob: &str, text: &str, expected| assert_eq!(matches(glob, text), expected, "{glob} {text}");
    check("write_file", "write_file", true);
    check("write_file", "write_files", false);
    check("write_file", "Write_file", false);
    check("*", "", true);
    check("*", "anything at all / ü", true);
    check("**", "x", true);
    check("", "", true);
    check("", "x", false);
    check("mcp__*", "mcp__github__search", true);
    check("mcp__*", "mcp_", false);
    check("mcp__*__read", "mcp__a__b__read", true);
    check("mcp__*__read", "mcp__a__reads", false);
    check("*_file", "read_file", true);
    check("*_file", "read_file_x", false);
    check("a?c", "abc", true);
    check("a?c", "aüc", true);
    check("a?c", "ac", false);
    check("a*b*c", "a-b-b-c", true);
    check("a*b*c", "a-c-b", false);
    check("a[b]", "a[b]", true);
    check("a[b]", "ab", false);
    check("{a,b}", "a", false);
    check("*aab", "aaaaaaab", true);
}

#[test]
fn many_stars_take_no_time() {
    assert!(!matches(&"*a".repeat(500), &"a".repeat(400)));
    assert!(!matches(&format!("{}b", "*a".repeat(50)), &"a".repeat(20_000)));
}

#[test]
fn only_stars_are_everything() {
    assert!(is_everything("*") && is_everything("**"));
    assert!(!is_everything("") && !is_everything("*a") && !is_everything("?"));
}

fn obvious(glob: &[char], text: &[char]) -> bool {
    match (glob, text) {
        ([], text) => text.is_empty(),
        (['*', rest @ ..], text) => (0..=text.len()).any(|taken| obvious(rest, &text[taken..])),
        (['?', glob @ ..], [_, text @ ..]) => obvious(glob, text),
        ([g, glob @ ..], [t, text @ ..]) => g == t && obvious(glob, text),
        _ => false,
    }
}

proptest! {
    #[test]
    fn agrees_with_the_obvious_way(glob in "[ab?*]{0,8}", text in "[ab]{0,8}") {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        prop_assert_eq!(matches(&glob, &text), obvious(&chars(&glob), &chars(&text)));
    }
}
