//! A server that is killed, again and again, at whatever it is: each reader goes on where it was,
//! and gets one ending.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    path::Path,
};

use mainstem::prelude::{AgentEvent, EventKind};
use mainstem_testing::{laws, render};

use crate::support::{Running, mainstem};

const TOKEN: &str = "the-token-of-the-test";

/// How often it is killed.
const KILLS: u64 = 50;

fn serve(journal: &Path) -> (Running, String) {
    let line = "serve -m demo --bind 127.0.0.1:0 --log off --token-file tokens --demo-pace 0.05 --journal";
    let mut running = mainstem(line).file("tokens", TOKEN).arg(journal).start();
    let url = running.line();
    (running, url.trim().strip_prefix("http://").unwrap().to_owned())
}

/// Returns the lines of JSON in the response to a request.
pub(crate) fn lines(address: &str, request: &str, body: &str) -> impl Iterator<Item = String> {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "{request} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nauthorization: Bearer {TOKEN}\r\naccept: application/x-ndjson\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    // The sizes of chunks stand on lines of their own; a chunk holds whole events.
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.filter(|line| line.starts_with('{'))
}

/// Asks for events as lines; returns those before the end of the connection, up to a number.
pub(crate) fn read(address: &str, request: &str, body: &str, most: usize) -> Vec<AgentEvent> {
    let events = lines(address, request, body).map(|line| serde_json::from_str(&line).unwrap());
    events.take(most).collect()
}

/// The same numbers every time.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn a_server_is_killed_at_fifty_points_and_nobody_loses_what_was_seen() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal.db");
    let (mut state, mut before, mut cut) = (7, None::<(String, Vec<AgentEvent>)>, 0);
    for kill in 0..=KILLS {
        let (running, address) = serve(&journal);
        if let Some((session, mut seen)) = before.take() {
            let last = seen.last().unwrap().seq;
            let run = seen[0].run_id().unwrap().to_string();
            let rest = format!("GET /v1/sessions/{session}/events?run={run}&after={last}");
            seen.extend(read(&address, &rest, "", usize::MAX));
            let all =
                read(&address, &format!("GET /v1/sessions/{session}/events?follow=false"), "", usize::MAX);
            let of_run: Vec<_> =
                all.iter().filter(|event| event.run_id() == Some(&run.as_str().parse().unwrap())).collect();
            let until_end = of_run.iter().position(|event| event.is_run_end()).unwrap();
            let place = || format!("killed {kill} times, the last time after {last}:\n{}", render(&all));
            assert!(seen.iter().eq(of_run[..=until_end].iter().copied()), "{}", place());
            laws(&all).unwrap_or_else(|error| panic!("{error}\n{}", place()));
            let mut ends = BTreeMap::new();
            for event in &all {
                match &event.kind {
                    EventKind::AgentStart { .. } => _ = ends.entry(event.reply_id()).or_insert(0),
                    EventKind::AgentEnd { .. } => *ends.entry(event.reply_id()).or_insert(0) += 1,
                    _ => {}
                }
            }
            assert!(ends.values().all(|times| *times == 1), "{ends:?}\n{}", place());
            let was_cut = |event: &AgentEvent| matches!(&event.kind, EventKind::AgentEnd { error: Some(error), .. } if error.code == "restarted");
            cut += u64::from(all.iter().any(was_cut));
        }
        if kill < KILLS {
            let session = format!("s{kill}");
            let most = 1 + (random(&mut state) % 340) as usize;
            let post = format!("POST /v1/sessions/{session}/runs");
            let seen = read(&address, &post, r#"{"input": "Review it"}"#, most);
            running.signal("KILL");
            assert_eq!(seen.len(), most);
            before = Some((session, seen));
        } else {
            running.signal("INT");
        }
        running.done();
    }
    // Or nothing was shown by this.
    assert!(cut > KILLS * 3 / 4, "{cut} of {KILLS} were running");
}
