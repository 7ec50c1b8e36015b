//! Texts that are too long.

use mainstem_message::ToolState;

use super::*;

#[test]
fn cuts_are_at_lines_or_at_characters() {
    let check = |text: &str, max: usize, head: &str, tail: &str| {
        assert_eq!((beginning(text, max), ending(text, max)), (head, tail), "{text:?} {max}");
    };
    check("one\ntwo\nthree", 9, "one\ntwo", "two\nthree");
    check("one\ntwo\nthree", 8, "one\ntwo", "three");
    // Without the end of a line nearby.
    check("a\nbcdefgh", 6, "a\nbcde", "cdefgh");
    check("abcdefgh\ni", 6, "abcdef", "efgh\ni");
    check("äöü", 3, "ä", "ü");
    check("🦀🦀", 6, "🦀", "🦀");
    check("one\ntwo", 3, "one", "two");
    check("short", 99, "short", "short");
    check("", 3, "", "");
}

#[test]
fn the_note_says_how_much_there_is_and_where() {
    let text: String = (1..=20_000).map(|n| format!("line {n}\n")).collect();
    let shown = preview(&text, Some(Ok("artifacts/s/1.txt".to_owned())));
    let note = "[The result is too long: 208894 bytes in 20000 lines. All of it is in the file \"artifacts/s/1.txt\"; what is left out \
                here begins in its line 695.]\nline 1\nline 2\n";
    assert!(shown.starts_with(note), "{}", &shown[..300]);
    assert!(shown.ends_with("\nline 19999\nline 20000\n") && shown.len() < 9 << 10, "{}", shown.len());
    let (head, tail) = shown.split_once("\n[… ").unwrap();
    assert!(head.ends_with("\nline 694"), "the next is the one named");
    let (left_out, tail) = tail.split_once(" bytes left out …]\n").unwrap();
    let head = head.split_once('\n').unwrap().1;
    assert_eq!(left_out.parse::<usize>().unwrap() + head.len() + tail.len(), text.len());
}

#[test]
fn what_can_not_be_kept_is_shown_as_far_as_it_fits() {
    for (kept, said) in [
        (None, "What is left out here is not kept; ask for less at once.]"),
        (
            Some(Err(ToolError::new("disk full"))),
            "It could not be kept (disk full), so what is left out here is lost;",
        ),
    ] {
        let shown = preview(&"ä".repeat(100_000), kept);
        assert!(shown.contains(said), "{}", &shown[..300]);
        assert!((60 << 10..=MAX_RESULT_BYTES).contains(&shown.len()), "{}", shown.len());
    }
}

#[test]
fn the_note_names_the_artifact() {
    let check = |text: &str, expected: Option<&str>| {
        let content = vec![ContentBlock::text(text)];
        let name = "dig".to_owned();
        let result = ToolResult { tool_call_id: "c".into(), name, content, state: ToolState::Success };
        assert_eq!(artifact_path(&result), expected, "{text:.80}");
    };
    let long = "x\n".repeat(90_000);
    let stored = |path: &str| preview(&long, Some(Ok(path.to_owned())));
    check(&stored("artifacts/s/1.txt"), Some("artifacts/s/1.txt"));
    check(&stored("artifacts/%%a/b%20.1.txt"), Some("artifacts/%%a/b%20.1.txt"));
    check(&preview(&long, None), None);
    check(&preview(&long, Some(Err(ToolError::new("disk full")))), None);
    for text in
        ["", "short", NOTE, STORED, "[The result is too long: 1 bytes\nAll of it is in the file \"a\""]
    {
        check(text, None);
    }
    check(&format!("{NOTE}1 bytes. {STORED}"), None);
    check(&format!("{NOTE}1 bytes. {STORED}\"a"), None);
}
