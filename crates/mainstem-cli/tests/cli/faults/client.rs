//! Requests to a server that may be killed while it answers.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
};

use mainstem::prelude::AgentEvent;

use super::{LIMIT, TOKEN};

/// What came of an answer before it ended, or the connection did.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Its first line.
    pub(super) head: String,
    pub(super) events: Vec<AgentEvent>,
    /// Lines of JSON that are no events.
    pub(super) rest: String,
}

impl Answer {
    pub(super) fn of(events: Vec<AgentEvent>) -> Self {
        Self { events, ..Self::default() }
    }
}

/// Sends a request and reads the answer, as lines of events.
pub(super) fn ask(address: &str, request: &str, body: &str) -> Answer {
    let mut answer = Answer::default();
    // Who does not answer at all is dead.
    let Ok(mut stream) = TcpStream::connect(address) else { return answer };
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let sent = write!(
        stream,
        "{request} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nauthorization: Bearer {TOKEN}\r\naccept: application/x-ndjson\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    if sent.is_err() {
        return answer;
    }
    for line in BufReader::new(stream).lines() {
        let line = match line {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("{request}: no answer"),
            Err(_) => break,
            Ok(line) => line,
        };
        if answer.head.is_empty() {
            answer.head = line;
        } else if line.starts_with('{') {
            match serde_json::from_str::<AgentEvent>(&line) {
                Ok(event) => answer.events.push(event),
                Err(_) => answer.rest.push_str(&line),
            }
        }
    }
    answer
}
