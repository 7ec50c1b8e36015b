//! Which progress is shown where.

use super::*;

#[test]
fn live_only_where_somebody_watches() {
    let check = |stdout, stderr, is_dumb, format, asked, expected| {
        let terminal = Terminal { stdout, stderr, is_dumb, ..Terminal::default() };
        assert_eq!(terminal.mode(asked, format).0, expected, "{terminal:?} {format:?}");
    };
    check(true, true, false, Format::Text, Mode::Auto, Mode::Live);
    check(false, true, false, Format::Ndjson, Mode::Auto, Mode::Live);
    check(true, true, false, Format::Ndjson, Mode::Auto, Mode::Quiet);
    check(true, true, false, Format::Ndjson, Mode::Live, Mode::Live);
    check(true, true, true, Format::Text, Mode::Auto, Mode::Plain);
    check(true, false, false, Format::Text, Mode::Auto, Mode::Plain);
    check(true, false, false, Format::Sse, Mode::Auto, Mode::Plain);
    check(true, false, false, Format::Text, Mode::Live, Mode::Plain);
    check(true, true, true, Format::Text, Mode::Live, Mode::Live);
    check(false, false, true, Format::Text, Mode::Quiet, Mode::Quiet);
}

#[test]
fn the_locale_decides_on_ascii() {
    let check = |vars: &[(&str, &str)], expected| {
        let var = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        assert_eq!(is_utf8(var), expected, "{vars:?}");
    };
    check(&[("LANG", "de_DE.UTF-8")], true);
    check(&[("LANG", "C.utf8")], true);
    check(&[("LANG", "C")], false);
    check(&[("LANG", "en_US.UTF-8"), ("LC_ALL", "POSIX")], false);
    check(&[("LANG", "C"), ("LC_CTYPE", "en_US.UTF-8")], true);
    check(&[], false);
}

#[test]
fn nobody_watches_in_ci() {
    let dumb = |name: &'static str, value: &'static str| {
        Terminal::detect(Color::Never, false, |asked| (asked == name).then(|| value.to_owned())).is_dumb
    };
    assert!(dumb("CI", "true") && dumb("CI", "1") && dumb("TERM", "dumb"));
    assert!(!dumb("CI", "false") && !dumb("TERM", "xterm"));
}

#[test]
fn a_reply_is_rendered_where_it_is_read() {
    let reply = "# Title\n**a**\u{1b}[2J";
    let check = |stdout, markdown, expected: &str| {
        let terminal = Terminal { stdout, reply_markdown: markdown, ..Terminal::default() };
        assert_eq!(terminal.reply(reply), expected);
    };
    check(true, true, "\u{1b}[1m\u{1b}[4mTitle\u{1b}[0m\n\n\u{1b}[1ma\u{1b}[0m\n");
    check(false, true, "# Title\n**a**\n");
    check(true, false, "# Title\n**a**\n");
    let detect = |color, raw, lang: &str| {
        Terminal::detect(color, raw, |name| (name == "LANG").then(|| lang.to_owned())).markdown
    };
    assert!(detect(Color::Always, false, "C.UTF-8"));
    assert!(!detect(Color::Always, true, "C.UTF-8"));
    assert!(!detect(Color::Never, false, "C.UTF-8"));
    assert!(cfg!(windows) || !detect(Color::Always, false, "C"));
}
