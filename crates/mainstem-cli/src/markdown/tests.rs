//! Texts as a terminal shows them.

use super::*;

/// Returns the lines without their styles.
fn plain(text: &str, width: usize) -> String {
    let lines = lines(text, width);
    let plain = |line: &Line<'_>| line.spans.iter().map(|span| &*span.content).collect::<String>();
    lines.iter().map(|line| plain(line).trim_end().to_owned() + "\n").collect()
}

#[test]
fn blocks() {
    let check = |text: &str, expected: &str| assert_eq!(plain(text, 20), expected, "{text}");
    check("", "");
    check("one\ntwo", "one two\n");
    check("one  \ntwo\n\nthree", "one\ntwo\n\nthree\n");
    check("# Title\ntext", "Title\n\ntext\n");
    check("a **b** `c` *d* ~~e~~", "a b c d e\n");
    check("the quick brown fox jumps over", "the quick brown fox\njumps over\n");
    check("antidisestablishmentarianism yes", "antidisestablishment\narianism yes\n");
    check("日本語の文章はここで折り返す", "日本語の文章はここで\n折り返す\n");
    check("- one\n- two\n  - three\n- four", "• one\n• two\n  • three\n• four\n");
    check("- a long item that wraps\n- b", "• a long item that\n  wraps\n• b\n");
    check("9. nine\n10. ten is a longer item", "9. nine\n10. ten is a longer\n    item\n");
    check("- one\n\n  more\n- two", "• one\n\n  more\n\n• two\n");
    check("before\n- a\n\nafter", "before\n\n• a\n\nafter\n");
    check("- [x] done\n- [ ] open", "• ☑ done\n• ☐ open\n");
    check("-\n- b", "•\n• b\n");
    check("> quoted text that wraps\n>\n> more", "│ quoted text that\n│ wraps\n│\n│ more\n");
    check("> - a\n> - b\n\nc", "│ • a\n│ • b\n\nc\n");
    check("```rust\nfn main() {}\n\n\tx\n```\nend", "  rust\n  fn main() {}\n\n      x\n\nend\n");
    check("```\na line of code that is long\n```", "  a line of code that is long\n");
    check("- a\n  ```\n  code\n  ```\n- b", "• a\n\n    code\n\n• b\n");
    check("a\n\n---\n\nb", "a\n\n────────────────────\n\nb\n");
    check("[docs](https://a.b)", "docs (https://a.b)\n");
    check("<https://a.b/c>", "https://a.b/c\n");
    check("![a cat](cat.png)", "a cat (cat.png)\n");
    check("<b>html</b>", "<b>html</b>\n");
    // A text that still grows: open fences, spans and lists.
    check("```\ncode", "  code\n");
    check("a **bo", "a **bo\n");
    check("- ", "•\n");
}

#[test]
fn deep_blocks_stand_no_further_right() {
    let check = |text: &str, widest: usize| {
        let lines = lines(text, 40);
        let (count, width) = (lines.len(), lines.iter().map(Line::width).max().unwrap());
        assert!(count < 4_000 && width <= widest, "{count} lines of {width}");
    };
    check(&format!("{} {}", ">".repeat(4_000), "a ".repeat(2_000)), 40);
    check(&format!("{}{}", "- ".repeat(2_000), "word ".repeat(2_000)), 40);
    assert_eq!(plain("> > > a\n\nb", 8), "│ │ a\n\nb\n");
}

#[test]
fn tables_fit_the_width() {
    let text = "| city | inhabitants |\n|---|--:|\n| Paris | 2 million |\n| Rome | `2.8` million |\n\nend";
    let check = |width, expected: &str| assert_eq!(plain(text, width), expected);
    check(40, "city  │ inhabitants\n──────┼────────────\nParis │ 2 million\nRome  │ 2.8 million\n\nend\n");
    check(
        16,
        "city  │ inhabita\n      │ nts\n──────┼─────────\nParis │ 2\n      │ million\nRome  │ 2.8\n      │ million\n\nend\n",
    );
}

#[test]
fn no_control_sequence_gets_through() {
    let text = "a\u{1b}[2Jb &#x1b;[31m &#27; [x](a&#x1b;b)\n\n```a&#27;b\n\u{7}c\n```\n\n| &#x9b; |\n|-|\n| \u{202e}x |";
    let shown = plain(text, 40);
    assert!(!shown.contains(|c: char| c != '\n' && c.is_control() || c == '\u{202e}'), "{shown:?}");
    assert_eq!(shown.matches('\u{fffd}').count(), 0, "{shown:?}");
}

#[test]
fn styles_are_escape_sequences() {
    let check = |text: &str, expected: &str| assert_eq!(ansi(&lines(text, 80)), expected, "{text}");
    check("plain", "plain\n");
    check(
        "**bold** and *both **b***",
        "\u{1b}[1mbold\u{1b}[0m and \u{1b}[3mboth \u{1b}[0m\u{1b}[1m\u{1b}[3mb\u{1b}[0m\n",
    );
    check("`code`", "\u{1b}[36mcode\u{1b}[0m\n");
    check("## head", "\u{1b}[1mhead\u{1b}[0m\n");
}

#[test]
fn a_long_text_is_laid_out_from_a_paragraph_on() {
    let text = format!("{}\n\nthe end", "word ".repeat(20_000));
    let last: Vec<_> = last_lines(&text, 40, 3).iter().map(ToString::to_string).collect();
    assert_eq!(last, ["the end"]);
    let text = format!("{}\n\nthe end", "é ".repeat(100));
    assert_eq!(last_lines(&text, 40, 1).len(), 1);
    assert!(tail(&"é".repeat(TAIL)).len() <= TAIL);
}
