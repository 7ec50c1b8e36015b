//! Conformance with WHATWG server-sent events, cut at every byte.

use std::{fmt::Write, iter};

use proptest::prelude::*;

use super::*;

/// Returns events as text: `type "data" #id ~retry`, and `!` for an error.
fn decode(chunks: &[&[u8]], limit: usize, finish: bool) -> Vec<String> {
    let shown = |event: Result<_, _>| event.map_or_else(|_| "!".to_owned(), |event| show(&event));
    let mut decoder = Decoder::with_limit(limit);
    let mut seen = Vec::new();
    for mut chunk in chunks.iter().copied() {
        while let Some(event) = decoder.decode(&mut chunk).transpose() {
            seen.push(shown(event));
        }
        assert!(chunk.is_empty(), "the decoder left {chunk:?} unread");
    }
    if finish {
        seen.extend(decoder.finish().transpose().map(shown));
    }
    seen
}

fn show(event: &SseEvent) -> String {
    let mut shown = format!("{} {:?}", event.event, event.data);
    if let Some(id) = &event.id {
        write!(shown, " #{id}").unwrap();
    }
    if let Some(retry) = event.retry {
        write!(shown, " ~{}", retry.as_millis()).unwrap();
    }
    shown
}

/// Checks that the input gives the same events whole, byte by byte, and cut in two at every place.
fn check(input: impl AsRef<[u8]>, expected: &[&str]) {
    check_with(input.as_ref(), DEFAULT_LIMIT, false, expected);
}

fn check_with(input: &[u8], limit: usize, finish: bool, expected: &[&str]) {
    let shown = String::from_utf8_lossy(input);
    assert_eq!(decode(&[input], limit, finish), expected, "{shown:?}");
    let bytes: Vec<_> = input.chunks(1).collect();
    assert_eq!(decode(&bytes, limit, finish), expected, "{shown:?}, byte by byte");
    for at in 0..=input.len() {
        let (left, right) = input.split_at(at);
        assert_eq!(decode(&[left, right], limit, finish), expected, "{shown:?}, cut at {at}");
    }
}

#[test]
fn conforms_to_whatwg() {
    // The examples of the standard.
    check("data: YHOO\ndata: +2\ndata: 10\n\n", &[r#"message "YHOO\n+2\n10""#]);
    check(
        ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
        &[r#"message "first event" #1"#, r#"message "second event""#, r#"message " third event""#],
    );
    check("data\n\ndata\ndata\n\ndata:\n", &[r#"message """#, r#"message "\n""#]);
    check("data:test\n\ndata: test\n\n", &[r#"message "test""#; 2]);
    check(
        "event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\n",
        &[r#"add "73857293""#, r#"remove "2153""#],
    );

    // Byte order mark: one, at the very start.
    check("\u{feff}data: a\n\n", &[r#"message "a""#]);
    check("\u{feff}\u{feff}data: a\n\n", &[]);
    check("data: a\n\n\u{feff}data: b\n\n", &[r#"message "a""#]);
    check(b"\xef\xbbdata: a\n\ndata: b\n\n", &[r#"message "b""#]);
    check("data: \u{feff}a\n\n", &[r#"message "\u{feff}a""#]);

    // Line ends, mixed as well.
    check("data: a\r\rdata: b\r\r", &[r#"message "a""#, r#"message "b""#]);
    check("data: a\r\n\r\ndata: b\r\n\r\n", &[r#"message "a""#, r#"message "b""#]);
    check("data: a\r\ndata: b\rdata: c\n\r", &[r#"message "a\nb\nc""#]);
    check("data: a\n\r\n\r\n\n\r", &[r#"message "a""#]);
    check("data: a\u{2028}b\u{85}c\u{b}\n\n", &["message \"a\\u{2028}b\\u{85}c\\u{b}\""]);

    // Comments and unknown fields are passed over, wherever they stand.
    check(":\n\n: ping\n\n:data: a\n\n", &[]);
    check("data: a\n: in between\ndata: b\n\n", &[r#"message "a\nb""#]);
    check("dat: a\ndatas: a\n data: a\nDATA: a\nfoo\n\ndata: b\n\n", &[r#"message "b""#]);

    // Colon and space: one space is taken off, no more, no tab.
    check("data:  a \n\n", &[r#"message " a ""#]);
    check("data:\ta\n\n", &[r#"message "\ta""#]);
    check("data::a: b\n\n", &[r#"message ":a: b""#]);
    check("data : a\n\n", &[]);

    // Without data there is no event; and the type is not carried over to the next one.
    check("event: a\n\ndata: b\n\n", &[r#"message "b""#]);
    check("event: a\nevent: b\ndata: c\n\n", &[r#"b "c""#]);
    check("event: a\nevent\ndata: c\n\n", &[r#"message "c""#]);
    check("\n\n\r\n", &[]);

    // Ids persist, are emptied explicitly only, ignored with a NUL, and set without data too.
    check(
        "id: 1\ndata: a\n\ndata: b\n\nid: 2\n\ndata: c\n\n",
        &[r#"message "a" #1"#, r#"message "b" #1"#, r#"message "c" #2"#],
    );
    check("id: 1\n\nid: \ndata: a\n\n", &[r#"message "a""#]);
    check("id: 1\n\nid: 2\0\ndata: a\n\n", &[r#"message "a" #1"#]);
    check("id:\u{e9}\ndata: a\n\n", &["message \"a\" #\u{e9}"]);

    // Retry: digits only.
    check("retry: 1000\ndata: a\n\n", &[r#"message "a" ~1000"#]);
    check(
        "retry:20\n\nretry: 1s\nretry: -1\nretry: 1.5\nretry:\nretry\ndata: a\n\n",
        &[r#"message "a" ~20"#],
    );
    check("retry: 99999999999999999999\ndata: a\n\n", &[r#"message "a""#]);

    // Text: characters cut between chunks, and bytes that are no text.
    check("event: é\ndata: 日本語 🦀\n\n", &["é \"日本語 🦀\""]);
    check(b"data: a\xf0\x9f\xa6\n\n", &["message \"a\u{fffd}\""]);
    check(b"data: \xff\xc0b\n\n", &["message \"\u{fffd}\u{fffd}b\""]);
    check("data: a\0b\n\n", &[r#"message "a\0b""#]);

    // An event without its blank line is not dispatched.
    check("data: a\n\ndata: b\n", &[r#"message "a""#]);
    check("data: a\n\ndata: b", &[r#"message "a""#]);
}

#[test]
fn finish_returns_what_only_lacked_its_blank_line() {
    let check = |input: &str, expected: &[&str]| {
        check_with(input.as_bytes(), DEFAULT_LIMIT, true, expected);
    };
    check("data: a\n\ndata: [DONE]", &[r#"message "a""#, r#"message "[DONE]""#]);
    for end in ["\n", "\r", "\r\n", "\n\n", "\n\n\n"] {
        check(&format!("event: x\ndata: a{end}"), &[r#"x "a""#]);
    }
    check("data: a\ndat", &[r#"message "a""#]);
    check("data: a\n:", &[r#"message "a""#]);
    for nothing in
        ["", "\n", "da", "data", "data:", "data: ", "data:\n", "event: x\n", ": a", "id: 1", "\u{feff}"]
    {
        check(nothing, &[]);
    }
    // A field that may have been cut short is ignored.
    check(
        "id: 1\nretry: 10\ndata: a\n\nid: 2\ndata: b\nretry: 2",
        &[r#"message "a" #1 ~10"#, r#"message "b" #1 ~10"#],
    );
}

#[test]
fn a_finished_decoder_takes_a_new_connection() {
    let mut decoder = Decoder::new();
    assert_eq!(decoder.decode(&mut &b"id: 1\nretry: 5\n\nid: 2\ndata: cut\nretry: 7"[..]), Ok(None));
    assert_eq!(decoder.finish().unwrap().unwrap().data, "cut");
    assert_eq!(decoder.finish(), Ok(None));
    assert_eq!(decoder.last_event_id().map(|id| &**id), Some("1"));
    assert_eq!(decoder.retry(), Some(Duration::from_millis(5)));
    let event = decoder.decode(&mut "\u{feff}data: new\n\n".as_bytes()).unwrap().unwrap();
    assert_eq!(show(&event), r#"message "new" #1 ~5"#);
}

#[test]
fn an_event_above_the_limit_is_an_error_and_the_next_one_comes() {
    let check = |input: &str, expected: &[&str]| check_with(input.as_bytes(), 4, true, expected);
    check("data: 1234\n\n", &[r#"message "1234""#]);
    check("data: 12345\nid: 1\n\ndata: b\n\n", &["!", r#"message "b""#]);
    check("data: 12\ndata: 34\n\ndata: b\n\n", &["!", r#"message "b""#]);
    check("data\ndata\ndata\ndata\ndata\ndata\ndata\n\n", &["!"]);
    check("event: 12345\ndata: a\n\ndata: b\n\n", &["!", r#"message "b""#]);
    check("id: 12345\ndata: a\n\ndata: b\n\n", &["!", r#"message "b""#]);
    check("data: 1234\ndata: 5", &["!"]);
    // Ignored bytes have no limit.
    check(": a long comment\nunknown: field\ndata: a\n\n", &[r#"message "a""#]);
    check_with(b"data: a\n\ndata: ab\n\n", 0, true, &[r#"message "a""#, "!"]);
}

#[test]
fn memory_is_bounded_by_the_limit() {
    let mut decoder = Decoder::with_limit(1024);
    let chunk = [b'x'; 4096];
    let mut refused = 0;
    decoder.decode(&mut &b"data: "[..]).unwrap();
    for _ in 0..1000 {
        refused += usize::from(decoder.decode(&mut &chunk[..]).is_err());
    }
    assert_eq!(refused, 1, "one error an event, however long it goes on");
    assert!(format!("{decoder:?}").contains(r#"data_buf: """#));
}

#[test]
fn a_large_event_leaves_no_large_buffers_behind() {
    let large = "x".repeat(KEEP * 4);
    for end in ["\n", "\r", "\r\n"] {
        let text = format!("id: 1\n\ndata: {large}\n\n\u{feff}data: no BOM here\n\ndata: b\n\n");
        let text = text.replace('\n', end);
        let mut input = text.as_bytes();
        let mut decoder = Decoder::new();
        let first = decoder.decode(&mut input).unwrap().unwrap();
        assert_eq!((first.data.len(), first.data.capacity()), (KEEP * 4, KEEP * 4));
        let second = decoder.decode(&mut input).unwrap().unwrap();
        assert_eq!(show(&second), r#"message "b" #1"#);
        assert_ne!(second.data.capacity(), 1, "its buffer was small, and not made small");
    }
}

/// Returns the standard's algorithm on a whole text, line by line: slow and plain.
fn reference(input: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(input).replace("\r\n", "\n").replace('\r', "\n");
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let (mut seen, mut staged, mut retry) = (Vec::new(), String::new(), None);
    let (mut event, mut data) = (String::new(), String::new());
    // The text after the last line break is not a line.
    for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
        match name {
            _ if line.is_empty() => {
                if let Some(data) = data.strip_suffix('\n') {
                    let event = if event.is_empty() { "message".into() } else { event.clone().into() };
                    let id = Some(staged.as_str().into()).filter(|id: &Arc<str>| !id.is_empty());
                    seen.push(show(&SseEvent { event, data: data.to_owned(), id, retry }));
                }
                (event, data) = Default::default();
            }
            "data" => data = data + &value + "\n",
            "event" => event = value,
            "id" if !value.contains('\0') => staged = value,
            "retry" if value.bytes().all(|b| b.is_ascii_digit()) => {
                retry = value.parse::<u32>().ok().map(|ms| Duration::from_millis(ms.into())).or(retry);
            }
            _ => {}
        }
    }
    seen
}

/// Generates text that mostly consists of characters with a meaning in the format.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        8 => prop::sample::select(&[
            "data", "event", "id", "retry", ":", ": ", " ", "\n", "\r", "\r\n", "\n\n", "42", "\0",
            "\u{feff}", "🦀", "data: a\n", "da", ": ping\n", "\r\r", "event: e\r\n",
        ][..]).prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.concat())
}

/// Cuts `input` at `cuts`, taken modulo its length.
fn cut<'a>(input: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<_> = cuts.iter().map(|cut| cut.index(input.len() + 1)).collect();
    at.sort_unstable();
    let starts = iter::once(0).chain(at.iter().copied());
    let ends = at.iter().copied().chain([input.len()]);
    starts.zip(ends).map(|(start, end)| &input[start..end]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn any_chunking_gives_the_events_of_the_standard(
        input in frames(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        prop_assert_eq!(decode(&cut(&input, &cuts), DEFAULT_LIMIT, false), reference(&input));
    }

    #[test]
    fn a_small_limit_is_independent_of_chunking(
        input in frames(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        prop_assert_eq!(decode(&cut(&input, &cuts), 3, true), decode(&[&input], 3, true));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn random_bytes_never_panic(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..6),
        limit in 0_usize..40,
    ) {
        let chunks: Vec<_> = chunks.iter().map(Vec::as_slice).collect();
        decode(&chunks, limit, true);
    }
}
