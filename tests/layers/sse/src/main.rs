//! A program over `mainstem-sse` alone: server-sent events, out of bytes that are cut anywhere.

use bytes::BytesMut;
use mainstem_sse::{Decoder, Frame};

fn main() {
    let frame = Frame::data("Rome\nit is").with_event("delta").with_id("7").encode();

    // A network delivers one byte at a time if it likes.
    let (mut decoder, mut buffer) = (Decoder::new(), BytesMut::new());
    let mut events = Vec::new();
    for byte in frame {
        buffer.extend_from_slice(&[byte]);
        events.extend(decoder.decode(&mut buffer).expect("below the limit"));
    }
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].data, "Rome\nit is");
    assert_eq!(events[0].id.as_deref(), Some("7"));
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_program_runs() {
        super::main();
    }
}
