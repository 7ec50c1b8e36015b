//! `mainstem serve`: from its start to its stop.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use mainstem_testing::{laws, render};

use crate::support::{Running, events, mainstem};

const TOKEN: &str = "the-token-of-the-test";

/// A server of the demo, and its address.
fn serve(more: &str) -> (Running, String) {
    let line = format!("serve -m demo --bind 127.0.0.1:0 --log off --token-file tokens {more}");
    let mut running = mainstem(&line).file("tokens", &format!("{TOKEN}\nacme {TOKEN}-of-acme\n")).start();
    let url = running.line();
    (running, url.trim().strip_prefix("http://").unwrap().to_owned())
}

/// Sends a request; the answer is read from what this returns.
fn ask(address: &str, request: &str, headers: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "{request} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nauthorization: Bearer {TOKEN}\r\n{headers}"
    );
    write!(stream, "{head}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        .unwrap();
    stream
}

fn answer(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_run_is_asked_for_and_followed() {
    let (running, address) = serve("--demo-pace 0");
    let body = r#"{"input": "Review the discount change"}"#;
    let events = answer(ask(&address, "POST /v1/sessions/one/runs", "accept: text/event-stream\r\n", body));
    assert!(events.starts_with("HTTP/1.1 200 OK\r\n") && events.contains("event: AGENT_END"), "{events}");
    assert!(events.contains("event: end\ndata: {}"), "{events}");
    let tools = answer(ask(&address, "GET /v1/tools", "", ""));
    assert!(tools.contains("\"read_diff\""), "{tools}");
    running.signal("INT");
    let done = running.done();
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(
        done.stderr,
        "serving main with demo; Ctrl-C stops\nstopping; a second signal stops at once\n"
    );
}

#[test]
fn a_probe_says_if_runs_can_begin() {
    let (running, address) = serve("");
    let probe = |address: &str| mainstem("health --timeout 5s").env("MAINSTEM_SERVER", address).run();
    let done = probe(&format!("http://{address}"));
    assert_eq!(
        (done.code, &*done.stdout),
        (Some(0), &*format!("http://{address} can begin runs\n")),
        "{done:?}"
    );
    // As in a container without root certificates.
    let done = mainstem("health").arg(format!("http://{address}")).env("SSL_CERT_FILE", "nowhere.pem").run();
    assert_eq!(done.code, Some(0), "{done:?}");
    running.signal("INT");
    assert_eq!(running.done().code, Some(0));
    let done = probe(&format!("http://{address}"));
    assert!(done.code == Some(1) && done.stderr.contains("can't be reached"), "{done:?}");
    assert_eq!(probe("nonsense").code, Some(2));

    // A server that accepts and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let done = mainstem("health --timeout 200ms").arg(url).run();
    assert!(done.code == Some(1) && done.stderr.ends_with("no response in 200ms\n"), "{done:?}");
}

#[test]
fn a_stop_lets_runs_end_and_cancels_them_when_the_grace_is_over() {
    let (mut running, address) = serve("--demo-pace 3 --grace 300ms");
    let mut follower =
        ask(&address, "POST /v1/sessions/one/runs", "accept: text/event-stream\r\n", r#"{"input": "go"}"#);
    let mut begun = [0; 2048];
    assert!(follower.read(&mut begun).unwrap() > 0);
    let mut client = mainstem("run --session two go").env("MAINSTEM_SERVER", &format!("http://{address}"));
    client = client.env("MAINSTEM_TOKEN", TOKEN);
    let client = client.start();
    // Until they run.
    std::thread::sleep(Duration::from_millis(600));
    let at = Instant::now();
    running.signal("TERM");
    running.wait();
    assert!(at.elapsed() < Duration::from_secs(6), "{:?}", at.elapsed());
    let done = running.done();
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.stderr.ends_with("stopping; a second signal stops at once\ncancelling 2 runs\n"),
        "{done:?}"
    );
    let rest = answer(follower);
    let end = rest.rfind("\"outcome\":\"cancelled\"").expect("a reader sees how its run ends");
    assert!(rest[end..].contains("event: end\n"), "{rest}");
    let done = client.done();
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.ends_with("error: cancelled by the shutdown of the harness\n"), "{done:?}");
}

#[test]
fn a_run_waits_for_an_active_one_if_it_is_queued() {
    let (_running, address) = serve("--demo-pace 0.5");
    let url = format!("http://{address}");
    let at_server = |command: &str| mainstem(command).args(&["--server", &url]).env("MAINSTEM_TOKEN", TOKEN);
    let first = at_server("run --session s go").start();
    std::thread::sleep(Duration::from_millis(500));
    let done = at_server("run --session s again").run();
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(
        done.stderr.ends_with("wait for its end or cancel it, or queue this run (--queue)\n"),
        "{done:?}"
    );
    let queued = at_server("run --session s --queue again").run();
    assert_eq!((queued.code, first.done().code), (Some(0), Some(0)), "{queued:?}");
    assert!(queued.stderr.contains("the run is queued; it begins when"), "{queued:?}");
    for flag in ["--queue", "--on-lost close"] {
        assert_eq!(mainstem(&format!("run --session s {flag} go")).run().code, Some(2), "there is no server");
    }
}

#[test]
fn a_killed_server_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal.db");
    let serve = |pace: &str| {
        let line = format!(
            "serve -m demo --bind 127.0.0.1:0 --log off --token-file tokens --demo-pace {pace} --journal"
        );
        let mut running = mainstem(&line).file("tokens", TOKEN).arg(&journal).start();
        let url = running.line();
        (running, url.trim().strip_prefix("http://").unwrap().to_owned())
    };
    let all = |address: &str, after: u64| {
        let request = format!("GET /v1/sessions/one/events?follow=false&after={after}");
        let answer = answer(ask(address, &request, "accept: application/x-ndjson\r\n", ""));
        let lines = answer.lines().filter(|line| line.starts_with('{')).map(|line| format!("{line}\n"));
        events(&lines.collect::<String>())
    };
    let (running, address) = serve("1");
    let mut follower =
        ask(&address, "POST /v1/sessions/one/runs", "accept: text/event-stream\r\n", r#"{"input": "go"}"#);
    let mut begun = [0; 2048];
    assert!(follower.read(&mut begun).unwrap() > 0);
    let mut before = Vec::new();
    while before.len() < 20 {
        std::thread::sleep(Duration::from_millis(20));
        before = all(&address, 0);
    }
    running.signal("KILL");
    running.done();

    let (running, address) = serve("0");
    let listed = answer(ask(&address, "GET /v1/sessions", "", ""));
    assert!(listed.contains("\"id\":\"one\"") && listed.contains("\"runs\":1"), "{listed}");
    let after = all(&address, 0);
    laws(&after).unwrap_or_else(|error| panic!("{error}\n{}", render(&after)));
    assert!(after.iter().any(|event| event.is_run_end()), "{}", render(&after));
    let kept = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
    assert_eq!(kept, before.len(), "what was shown is there");
    assert_eq!(all(&address, 3), after[3..]);
    let missing = answer(ask(&address, "GET /v1/sessions/two/events", "", ""));
    assert!(missing.starts_with("HTTP/1.1 404 "), "{missing}");

    let headers = "accept: text/event-stream\r\n";
    let next = answer(ask(&address, "POST /v1/sessions/one/runs", headers, r#"{"input": "again"}"#));
    assert!(next.starts_with("HTTP/1.1 200 OK\r\n") && next.contains("event: end\n"), "{next}");
    let whole = all(&address, 0);
    laws(&whole).unwrap_or_else(|error| panic!("{error}\n{}", render(&whole)));
    assert!(whole.len() > after.len());
    running.signal("INT");
    assert_eq!(running.done().code, Some(0));
}

#[test]
fn what_can_not_be_served_is_said() {
    let done = mainstem("serve -m demo --bind 0.0.0.0:0").run();
    let open = "error: --bind 0.0.0.0:0: other machines reach this address, which requires --token-file\n";
    assert_eq!((done.code, &*done.stderr), (Some(2), open));
    let done = mainstem("serve").run();
    assert!(done.code == Some(3) && done.stderr.contains("or use -m demo for the demo"), "{done:?}");
    let done = mainstem("serve -m demo --token-file none").run();
    assert!(
        done.code == Some(3) && done.stderr.starts_with("error: --token-file none: No such file"),
        "{done:?}"
    );
    let done = mainstem("serve -m demo --token-file tokens").file("tokens", "# no\nshort\n").run();
    let short = "error: --token-file tokens: line 2: a token has at least 16 characters, without blanks\n";
    assert_eq!((done.code, &*done.stderr), (Some(3), short));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let done = mainstem(&format!("serve -m demo --bind {}", taken.local_addr().unwrap())).run();
    assert!(done.code == Some(1) && done.stderr.contains("Address already in use"), "{done:?}");
}
