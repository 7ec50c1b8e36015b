//! Recorded bytes, cut and garbled.

use std::sync::Arc;

use mainstem_http::{Api, Decode, Deltas, Endpoint, Form};
use proptest::{prelude::*, sample::Index};
use tokio_util::{
    bytes::BytesMut,
    codec::{Decoder as _, LinesCodec},
};

use super::Sample;

/// Returns the payloads of a body that comes in these pieces, up to the first that is not UTF-8.
pub fn payloads<'a, A: Api>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    match A::FORM {
        Form::Events => events(pieces),
        Form::Lines => lines(pieces),
    }
}

fn events<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut events = mainstem_sse::Decoder::new();
    let mut payloads = Vec::new();
    for mut piece in pieces {
        while let Some(event) = events.decode(&mut piece).unwrap() {
            payloads.push(event.data);
        }
    }
    payloads.extend(events.finish().unwrap().map(|event| event.data));
    payloads
}

fn lines<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let (mut codec, mut buffer, mut payloads) = (LinesCodec::new(), BytesMut::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        while let Some(line) = codec.decode(&mut buffer).unwrap() {
            payloads.push(line);
        }
    }
    // An error here is a character that was cut.
    payloads.extend(codec.decode_eof(&mut buffer).ok().flatten());
    payloads
}

/// Returns the deltas of some payloads, and the error that ends them.
fn decoded<A: Api>(payloads: &[impl AsRef<str>]) -> (Deltas, Result<(), String>) {
    let mut decoder = A::decoder(Arc::new(Endpoint::<A>::new("m").server().clone()));
    let mut deltas = Deltas::new();
    for payload in payloads {
        if let Err(error) = decoder.decode(payload.as_ref(), &mut deltas) {
            return (deltas, Err(error.to_string()));
        }
        if decoder.is_done() {
            break;
        }
    }
    let end = decoder.finish(&mut deltas).map_err(|error| format!("{}: {error}", error.kind().code()));
    (deltas, end)
}

/// The places of the reads change nothing.
pub fn cuts_change_nothing<A: Api>(sample: Sample) {
    for bytes in sample.recorded {
        let whole = payloads::<A>([*bytes]);
        let (deltas, end) = decoded::<A>(&whole);
        assert_eq!(end.is_ok(), complete_at(bytes, sample).is_some(), "{end:?} after {deltas:?}");
        for cut in 0..=bytes.len() {
            let (left, right) = bytes.split_at(cut);
            assert_eq!(payloads::<A>([left, right]), whole, "cut at {cut}");
        }
        assert_eq!(payloads::<A>(bytes.chunks(1)), whole);
    }
}

/// The sizes of the pieces change nothing.
pub fn pieces_of_any_size_mean_the_same<A: Api>(sample: Sample) {
    let cuts = prop::collection::vec(any::<Index>(), 0..40);
    proptest!(ProptestConfig::with_cases(1_000), |(bytes in prop::sample::select(sample.recorded), cuts in cuts)| {
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]);
        prop_assert_eq!(payloads::<A>(pieces), payloads::<A>([bytes]));
    });
}

/// Texts of JSON strings, and what ends one.
const TEXTS: [&str; 7] = ["", "a", "two words", "é\\n", "\\\"", "\\u00e9", "a\",\"content\":\"b"];

/// The names of fields that have text.
const FIELDS: [&str; 6] = ["text", "content", "delta", "thinking", "partial_json", "arguments"];

/// A decoder may parse what payloads have in common once: for any payloads in any order, it brings
/// what it brings if it parses each of them, which spaces make it do.
pub fn what_payloads_have_in_common_means_the_same<A: Api>(sample: Sample) {
    let known: Vec<_> = sample.recorded.iter().flat_map(|bytes| payloads::<A>([*bytes])).collect();
    let texts = prop::collection::vec((prop::sample::select(&TEXTS[..]), 0..100_u8), 1..4);
    let changed = (prop::sample::select(known), texts).prop_map(|(payload, texts)| {
        texts.into_iter().map(|(text, number)| with(&payload, text, number)).collect::<Vec<_>>()
    });
    proptest!(ProptestConfig::with_cases(3_000), |(payloads in prop::collection::vec(changed, 0..8))| {
        let payloads = payloads.concat();
        // Two payloads in a row differ behind their first bracket, so none follows the one before.
        let spaced = payloads.iter().enumerate().map(|(index, payload)| {
            payload.replacen('{', if index % 2 == 0 { "{ " } else { "{  " }, 1)
        });
        let shown = |(deltas, end): (Deltas, Result<(), String>)| (deltas, end.is_ok());
        prop_assert_eq!(shown(decoded::<A>(&payloads)), shown(decoded::<A>(&spaced.collect::<Vec<_>>())));
    });
}

/// Returns a payload with another text and another number.
fn with(payload: &str, text: &str, number: u8) -> String {
    let place = FIELDS.iter().find_map(|name| {
        let at = payload.find(&format!("\"{name}\":"))? + name.len() + 3;
        let start = at + payload[at..].strip_prefix(' ').map_or(0, |_| 1);
        let length = payload[start..].strip_prefix('"')?.find('"')?;
        Some(start + 1..start + 1 + length)
    });
    let mut changed = payload.to_owned();
    if let Some(place) = place {
        changed.replace_range(place, text);
    }
    [":1,", ": 1,", ":4,", ": 4,"].iter().fold(changed, |payload, old| {
        payload.replace(old, &old.replace(|digit: char| digit.is_ascii_digit(), &number.to_string()))
    })
}

/// A response is complete once its end was read, and at no byte before.
pub fn a_stream_that_breaks_off_is_never_taken_for_complete<A: Api>(sample: Sample) {
    for bytes in sample.recorded {
        for cut in 0..complete_at(bytes, sample).unwrap_or(bytes.len()) {
            let (deltas, end) = decoded::<A>(&payloads::<A>([&bytes[..cut]]));
            assert!(end.is_err(), "cut at {cut}: {deltas:?}");
        }
    }
}

/// Returns the end of the payload that completes the response.
fn complete_at(bytes: &[u8], sample: Sample) -> Option<usize> {
    let start = sample.endings.iter().find_map(|ending| find(bytes, ending.as_bytes()))?;
    let length = bytes[start..].iter().position(|byte| matches!(byte, b'\r' | b'\n'));
    Some(length.map_or(bytes.len(), |length| start + length))
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// Fragments of any JSON.
const JSON: [&str; 11] = ["{", "}", "[", "]", "\"", ":", ",", "null", "0", "-1", "1e999"];

/// Any bytes of a server are decoded without a panic.
pub fn nothing_panics<A: Api>(sample: Sample) {
    let rows: Vec<_> = sample.recorded.iter().flat_map(|bytes| payloads::<A>([*bytes])).collect();
    let pieces = prop::collection::vec(prop::sample::select([&JSON[..], sample.pieces].concat()), 0..40);
    let end = sample.end.last().unwrap();
    proptest!(ProptestConfig::with_cases(10_000), |(
        pieces in pieces,
        noise in ".{0,40}",
        at in any::<Index>(),
        row in any::<Index>(),
    )| {
        for text in [&pieces.concat(), &format!("{{{}}}", pieces.join(",")), &noise] {
            drop(decoded::<A>(&[text, *end]));
            decode_whole::<A>(text);
        }
        // A real payload with noise in it, and one without its middle.
        let payload: Vec<char> = rows[row.index(rows.len())].chars().collect();
        let (left, right) = payload.split_at(at.index(payload.len() + 1));
        let (left, right) = (left.iter().collect::<String>(), right.iter().collect::<String>());
        let noisy = format!("{left}{noise}{right}");
        drop(decoded::<A>(&[&noisy, &left, &right]));
        decode_whole::<A>(&noisy);
        let shorter: String = right.chars().skip(noise.len()).collect();
        drop(decoded::<A>(&[&format!("{left}{shorter}"), *end]));
    });
}

fn decode_whole<A: Api>(body: &str) {
    let mut decoder = A::decoder(Arc::new(Endpoint::<A>::new("m").server().clone()));
    // Either result is fine.
    drop(decoder.decode_whole(body, &mut Deltas::new()));
}
