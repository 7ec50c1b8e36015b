//! Bytes and tokens of prompts.

use mainstem_message::Message;
use mainstem_policy::ContextWindows;

use super::*;

/// A request with so many bytes of instructions and of messages.
fn request(overhead: usize, messages: usize) -> ModelRequest {
    let message = Arc::new(Message::user("x".repeat(messages)));
    ModelRequest {
        system: Some("x".repeat(overhead).into()),
        messages: vec![message],
        ..ModelRequest::default()
    }
}

#[test]
fn the_service_says_how_many_bytes_a_token_has() {
    let check = |bytes: usize, tokens: u64, expected: usize| {
        let mut estimate = Estimate::new(None);
        estimate.calibrate(Size { messages: bytes, overhead: 0 }, tokens);
        assert_eq!(estimate.bytes(1_000), expected, "{bytes} bytes, {tokens} tokens");
    };
    check(4_000, 1_000, 4_000);
    check(3_000, 1_000, 3_000);
    check(6_500, 1_000, 6_500);
    // Counts of several prompts, or of one that was cached or cut, teach little.
    check(1_000, 1_000, 2_000);
    check(90_000, 1_000, 8_000);
    check(0, 1_000, 4_000);
    check(4_000, 0, 4_000);
}

#[test]
fn a_prompt_is_too_long_if_its_messages_could_be_shorter() {
    let check = |overhead, messages, limit, expected: bool| {
        let mut estimate = Estimate::new(None);
        let size = estimate.size(&request(overhead, messages));
        assert_eq!(estimate.exceeds(size, limit), expected, "{size:?} {limit}");
    };
    check(8_000, 8_000, 4_000, false);
    check(8_000, 8_001, 4_000, true);
    check(0, 16_001, 4_000, true);
    check(11_904, 9_000, 4_000, true);
    check(11_905, 9_000, 4_000, false);
    check(20_000, 9_000, 4_000, false);
    check(0, 9_000, 0, false);
}

/// Of a window of 4,000 tokens, 80 % are 12,800 bytes; an answer leaves 12,000.
#[test]
fn the_room_is_what_instructions_and_tools_leave() {
    let check = |cause, known, (overhead, messages), expected: [usize; 4]| {
        let compaction = Compaction::default().with_windows(ContextWindows::default());
        let room = Estimate::new(None).room(&request(overhead, messages), cause, &compaction, known);
        let [messages, latest, notes, piece] = expected;
        assert_eq!(room, Room { messages, latest, notes, piece }, "{cause:?} {known:?}");
    };
    check(Cause::Full, Some(4_000), (2_000, 12_000), [10_000, 4_000, 2_500, 9_000]);
    check(Cause::Full, Some(4_000), (8_000, 6_000), [4_000, 2_000, 1_000, 9_000]);
    // Instructions that exceed the window: the service may still accept half of the messages.
    check(Cause::Refused, Some(4_000), (13_000, 6_000), [3_000, 1_500, 750, 9_000]);
    check(Cause::Refused, None, (0, 16_000), [10_800, 4_000, 2_700, 8_100]);
    // A person asks, and the prompt has fitted.
    check(Cause::Asked, Some(4_000), (2_000, 8_000), [10_000, 2_000, 2_000, 9_000]);
    check(Cause::Asked, None, (40_000, 20_000), [20_000, 5_000, 5_000, 30_375]);
}
