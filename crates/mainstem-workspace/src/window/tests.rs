//! Which lines are shown, for every cut of a text into blocks.

use proptest::prelude::*;

use super::*;

fn view(blocks: &[&[u8]], first: u64, limit: u64) -> View {
    let mut window = Window::new(first, limit);
    blocks.iter().for_each(|block| window.push(block));
    window.finish()
}

#[test]
fn lines_are_numbered_counted_and_cut() {
    #[track_caller]
    fn check(text: &str, first: u64, limit: u64, expected: &str, total: u64) {
        let view = view(&[text.as_bytes()], first, limit);
        assert_eq!((&*view.text, view.total), (expected, total), "{text:?}");
    }
    check("", 1, 10, "", 0);
    check("\n", 1, 10, "1\t\n", 1);
    check("a", 1, 10, "1\ta\n", 1);
    check("a\n", 1, 10, "1\ta\n", 1);
    check("a\nb", 1, 10, "1\ta\n2\tb\n", 2);
    check("a\nb\nc\nd", 2, 2, "2\tb\n3\tc\n", 4);
    check("a\nb\nc\nd\n", 2, 2, "2\tb\n3\tc\n", 4);
    check("a\nb\n", 3, 1, "", 2);
    check("a\r\nb\r\n", 1, 10, "1\ta\n2\tb\n", 2);
    check("\u{feff}a\n\u{feff}b", 1, 10, "1\ta\n2\t\u{feff}b\n", 2);
    check("é\n", 1, u64::MAX, "1\té\n", 1);
}

#[test]
fn what_is_odd_is_counted() {
    assert_eq!(view(&[b"a\r\nb\n\xFF\xFEc\n\xC3"], 1, 9).crlf, 1);
    assert_eq!(view(&[b"a\r\nb\n\xFF\xFEc\n\xC3"], 1, 9).garbled, 2);
}

#[test]
fn long_lines_and_long_texts_are_bounded() {
    let long = format!("{}é\nnext\n", "x".repeat(LINE - 1));
    let cut = format!("1\t{}… [line of 2001 bytes, cut]\n2\tnext\n", "x".repeat(LINE - 1));
    assert_eq!(view(&[long.as_bytes()], 1, 9).text, cut, "no character is split");
    let many = format!("{}\n", "y".repeat(999)).repeat(500);
    let shown = view(&[many.as_bytes()], 1, 2000);
    assert_eq!((shown.shown, shown.total), (49, 500));
    let rest = view(&[many.as_bytes()], 50, 2000);
    assert!(rest.text.starts_with("50\ty"));
}

#[test]
fn a_line_without_end_is_not_kept() {
    let mut window = Window::new(1, 9);
    let block = vec![b'z'; 1 << 16];
    (0..1600).for_each(|_| window.push(&block));
    assert!(window.pending.capacity() < 3 * LINE, "{}", window.pending.capacity());
    assert!(window.finish().text.ends_with("[line of 104857600 bytes, cut]\n"));
}

proptest! {
    #[test]
    fn blocks_do_not_matter(
        text in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(0xC3), Just(0xA9), any::<u8>()], 0..200),
        cuts in prop::collection::vec(0..200_usize, 0..6),
        first in 1..10_u64,
        limit in 1..10_u64,
    ) {
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let blocks: Vec<_> = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect();
        let found = view(&blocks, first, limit);
        let lines = text.split_inclusive(|byte| *byte == b'\n').count() as u64;
        prop_assert_eq!(found.total, lines);
        prop_assert_eq!(found.shown, lines.saturating_sub(first - 1).min(limit));
        prop_assert_eq!(found, view(&[&text], first, limit));
    }
}
