//! Server-sent events: where the reads end changes nothing, and what was read can be written.

use mainstem_sse::{DEFAULT_LIMIT, Decoder, Frame, SseEvent, TooLarge};

use crate::{fuzz, input::Input};

/// All events of a connection, and each event that was too large.
fn decode<'a>(pieces: impl Iterator<Item = &'a [u8]>, limit: usize) -> Vec<Result<SseEvent, TooLarge>> {
    let mut decoder = Decoder::with_limit(limit);
    let mut events = Vec::new();
    for mut piece in pieces {
        while let Some(event) = decoder.decode(&mut piece).transpose() {
            events.push(event);
        }
        assert!(piece.is_empty(), "bytes are left unread");
    }
    events.extend(decoder.finish().transpose());
    events
}

fn check(input: &Input) {
    for limit in [64, DEFAULT_LIMIT] {
        let whole = decode([&*input.bytes].into_iter(), limit);
        assert_eq!(decode(input.pieces(), limit), whole, "limit {limit}");
        for event in whole.iter().flatten() {
            // The limit is on bytes as sent; an invalid one becomes three.
            assert!(event.data.len() <= 3 * limit, "{} bytes of data", event.data.len());
            assert_written(event);
        }
    }
}

/// An event that was read is the same after it was written and read again.
fn assert_written(event: &SseEvent) {
    let frame = Frame::data(&event.data).with_event(&event.event);
    let frame = event.id.as_ref().map_or(frame, |id| frame.with_id(id));
    let bytes = frame.encode();
    let again = decode([&*bytes].into_iter(), DEFAULT_LIMIT);
    let expected = SseEvent { retry: None, ..event.clone() };
    assert_eq!(again, [Ok(expected)]);
}

#[test]
fn sse() {
    fuzz!("sse", check);
}
