//! The four forms, as stdout gets them.

use mainstem::message::Failure;
use mainstem_event::{EventKind, Origin, Timestamp};

use super::*;

const FORMATS: [Format; 4] = [Format::Text, Format::Json, Format::Ndjson, Format::Sse];

fn event() -> AgentEvent {
    let kind = EventKind::TextBlockDelta { block_id: "b".parse().unwrap(), delta: "Hi\u{9b}31m".to_owned() };
    let origin =
        Origin { reply_id: Some("r".parse().unwrap()), ..Origin::session("s".parse().unwrap(), None) };
    AgentEvent::new(1, Timestamp::default(), origin.into(), kind)
}

fn shown(bytes: Option<Bytes>) -> String {
    bytes.map_or_else(|| "-".to_owned(), |bytes| String::from_utf8(bytes.to_vec()).unwrap())
}

#[test]
fn events_are_lines_or_frames() {
    let shown = FORMATS.map(|format| shown(Output::new(format, Terminal::default()).event(&event())));
    let json = r#"{"type":"TEXT_BLOCK_DELTA","seq":1,"id":"s.1","sessionId":"s","createdAt":"1970-01-01T00:00:00.000000Z","replyId":"r","blockId":"b","delta":"Hi\u009b31m"}"#;
    let frame = format!("id: 1\nevent: TEXT_BLOCK_DELTA\ndata: {json}\n\n");
    assert_eq!(shown, ["-".to_owned(), "-".to_owned(), format!("{json}\n"), frame]);
}

#[test]
fn a_stream_of_frames_has_a_beginning() {
    let shown = FORMATS.map(|format| shown(Output::new(format, Terminal::default()).begin()));
    assert_eq!(shown, ["-", "-", "-", "retry: 2000\n\n"]);
}

#[test]
fn the_end_has_the_reply() {
    let mut fleet = FleetState::default();
    fleet.apply(&event());
    let replies = Texts::from([(None, "Red".to_owned())]);
    let partial = Texts::from([(None, "Re".to_owned())]);
    let mut ending = Ending {
        run_id: "run-1",
        outcome: Outcome::Success,
        reply: Some("Red: \u{1b}[31m".to_owned()),
        stop: Some(StopReason::Stop),
        error: None,
        cost: Some(7),
        fleet: &fleet,
        replies: &replies,
        partial: &partial,
        diagnostics: None,
    };
    let ends = [Format::Text, Format::Ndjson, Format::Sse]
        .map(|format| shown(Output::new(format, Terminal::default()).end(&ending)));
    assert_eq!(ends, ["Red: \n", "-", "event: end\ndata: {}\n\n"]);

    (ending.reply, ending.outcome, ending.error) = (None, Outcome::Error, Some(Failure::new("auth", "no")));
    assert_eq!(shown(Output::new(Format::Text, Terminal::default()).end(&ending)), "-");
    let json = shown(Output::new(Format::Json, Terminal::default()).end(&ending));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["agents"][0]["name"], "main");
    assert_eq!(json["agents"][0]["reply"], "Red");
    let expected = serde_json::json!({
        "runId": "run-1", "sessionId": "s", "outcome": "error", "reply": null, "stopReason": "stop",
        "partialReply": "Re",
        "error": { "code": "auth", "message": "no" }, "usage": json["usage"],
        "costMicros": 7, "agents": json["agents"],
    });
    assert_eq!(json, expected);
}

#[tokio::test]
async fn a_failed_write_is_noticed_and_ends_the_waiting() {
    struct Closed;
    impl std::io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut stdout = Stdout::start(Closed).unwrap();
    stdout.room(true).await.unwrap().send(Bytes::from_static(b"x"));
    assert_eq!(stdout.room(false).await.unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
    assert_eq!(stdout.room(true).await.unwrap_err().to_string(), "it is closed");
    assert!(stdout.finish().await.is_ok(), "the reason was told already");
}
