//! Head, tail and the part between.

use proptest::prelude::*;

use super::*;

fn told(blocks: &[&[u8]]) -> String {
    let mut output = Output::default();
    let mut text: String = blocks.iter().filter_map(|block| output.push(block)).collect();
    text.push_str(&output.finish());
    text
}

#[test]
fn short_output_is_told_as_it_comes() {
    let mut output = Output::default();
    assert_eq!(output.push(b"one\ntw").as_deref(), Some("one\ntw"));
    assert_eq!(output.push(b"\xC3"), None, "half a character waits");
    assert_eq!(output.push(b"\xA9\n").as_deref(), Some("é\n"));
    assert_eq!(output.finish(), "");
    assert_eq!(told(&[b"no newline"]), "no newline\n");
    assert_eq!(told(&[b"\xFFa\xC3"]), "\u{fffd}a\u{fffd}\n");
    assert_eq!(told(&[]), "");
}

#[test]
fn of_long_output_the_middle_is_counted() {
    let text: String = (0..200_000).map(|line| format!("{line:07}\n")).collect();
    let blocks: Vec<_> = text.as_bytes().chunks(1000).collect();
    let told = told(&blocks);
    let (head, rest) = told.split_once("[").unwrap();
    let (count, tail) = rest.split_once(" bytes left out]\n").unwrap();
    assert_eq!(head.len() + count.parse::<usize>().unwrap() + tail.len(), text.len());
    assert!(text.starts_with(head) && text.ends_with(tail));
    assert_eq!((head.len(), tail.len()), (HEAD, TAIL));
}

#[test]
fn memory_is_bounded() {
    let mut output = Output::default();
    (0..2000).for_each(|_| drop(output.push(&[b'x'; 8192])));
    assert!(output.kept.capacity() < 8 * TAIL, "{}", output.kept.capacity());
}

proptest! {
    #[test]
    fn nothing_is_lost_and_no_character_is_split(
        text in "[aé€\u{1F600}\n]{0,30}",
        repeat in prop::sample::select(vec![1_usize, 2, 700, 3000]),
        size in 1..9000_usize,
    ) {
        let text = text.repeat(repeat);
        let blocks: Vec<_> = text.as_bytes().chunks(size).collect();
        let told = told(&blocks);
        prop_assert!(!told.contains(char::REPLACEMENT_CHARACTER));
        let left_out = told.split_once('[').map_or(0, |(_, rest)| rest.split(' ').next().unwrap().parse().unwrap());
        let marks = if left_out > 0 { format!("[{left_out} bytes left out]\n").len() } else { 0 };
        let added = told.len() + left_out - marks - text.len();
        prop_assert!(added <= 2, "only newlines are added, not {}", added);
        prop_assert!(told.len() <= HEAD + 2 * TAIL + 40);
    }
}
