//! Servers that are slow, gone, elsewhere or endless.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    thread,
    time::Duration,
};

use futures_util::StreamExt;
use mainstem_api::{AnySession, Code, Error, EventQuery, Host, NewRun, SessionQuery};
use mainstem_event::Decision;

use crate::Server;

fn at(address: std::net::SocketAddr) -> Server {
    Server::at(&format!("http://u:p@{address}/v1/")).unwrap()
}

/// Returns a server that answers one request with this head, and then with this many bytes.
fn server(head: &'static str, size: usize) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
        lines.find(String::is_empty);
        stream.write_all(head.as_bytes()).unwrap();
        // The client leaves when it has read enough.
        let piece = [b'x'; 1 << 16];
        let _ = (0..size / piece.len()).try_for_each(|_| stream.write_all(&piece));
    });
    at(address)
}

#[test]
fn only_http_addresses_are_accepted() {
    #[track_caller]
    fn check(address: &str, expected: &str) {
        assert_eq!(Server::at(address).unwrap_err().to_string(), expected);
    }
    check("ftp://u:p@x", "ftp://x: an address begins with http:// or https://");
    check("localhost:7878", "localhost:7878: an address begins with http:// or https://");
    check("nowhere", "nowhere: an address begins with http:// or https://");
    check("u:secret@[x", "the address: an address begins with http:// or https://");
    check("u:secret@host:7878", "the address: an address begins with http:// or https://");
    check("//u:secret@host", "the address: an address begins with http:// or https://");
    check("http://u:p@host:1/prefix/?k=v", "http://host:1/prefix: an address ends before `?` and `#`");
    check("http://host/#token=secret", "http://host: an address ends before `?` and `#`");
    assert_eq!(Server::at("http://u:p@host:1/prefix/v1/").unwrap().address(), "http://host:1/prefix");
}

#[tokio::test]
async fn an_answer_of_another_server_is_told() {
    let other = server("HTTP/1.1 404 Not Found\r\n\r\n<h1>No such page</h1>", 0);
    let error = other.sessions(&SessionQuery::default()).await.unwrap_err();
    let problem = error.problem().unwrap();
    assert_eq!((problem.status, &*problem.title), (404, "Not Found"));
    let error = error.to_string();
    assert!(error.ends_with(": 404 Not Found; the answer is not from a Mainstem server"), "{error}");
}

#[tokio::test]
async fn what_a_server_sends_is_read_to_a_bound() {
    let endless = "HTTP/1.1 200 OK\r\n\r\n";
    let bounded = server(endless, 4 << 20).with_max_response(1 << 20);
    let error = bounded.sessions(&SessionQuery::default()).await.unwrap_err().to_string();
    assert!(error.ends_with("the response is larger than 1048576 bytes"), "{error}");
    let mut events = server(endless, 8 << 20).open("s").unwrap().events(EventQuery::default());
    let error = events.next().await.unwrap().unwrap_err().to_string();
    assert!(error.ends_with("a line of the stream is longer than 4194304 bytes"), "{error}");
    assert!(events.next().await.is_none(), "an error is the last item");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let moved = "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://u:p@127.0.0.1:1/y?z\r\ncontent-length: 0\r\n\r\n";
    let error = server(moved, 0).open("s").unwrap().run(NewRun::new("hi")).await.unwrap_err().to_string();
    assert!(error.ends_with("the server is at http://127.0.0.1:1/y; use that address"), "{error}");
    assert!(!error.contains("u:p"), "{error}");
}

#[tokio::test]
async fn a_run_is_not_begun_at_a_server_that_is_not_there() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let begin = at(address).open("s").unwrap();
    let begun = tokio::time::timeout(Duration::from_millis(900), begin.run(NewRun::new("hi"))).await;
    let error = begun.expect("it fails at once").unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        format!("http://{address} can't be reached: Connection refused (os error 111)")
    );
}

#[tokio::test]
async fn an_answer_reaches_a_server_that_comes_back() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let back = thread::spawn(move || {
        thread::sleep(Duration::from_millis(250));
        let (mut stream, _) = TcpListener::bind(address).unwrap().accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut lines = reader.by_ref().lines().map_while(Result::ok);
        let first = lines.next();
        lines.find(String::is_empty);
        // Closing a connection with unread bytes may cost the client the response.
        reader.read_exact(&mut [0; r#"{"decision":"allow"}"#.len()]).unwrap();
        let body = r#"{"status":409,"code":"not_asked","detail":"no such request"}"#;
        let head = format!("HTTP/1.1 409 Conflict\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all((head + body).as_bytes()).unwrap();
        first
    });
    let session = at(address).session(&mainstem_message::SessionId::parse_scoped("s/1").unwrap());
    let error = session.confirm(&"ask:1".parse().unwrap(), Decision::Allow).await.unwrap_err();
    // A refusal is not repeated.
    assert!(error.has_code(&Code::NotAsked), "{error}");
    assert_eq!(error.to_string(), format!("http://{address}: no such request"));
    let first = back.join().unwrap().unwrap();
    assert_eq!(first, "POST /v1/sessions/s%2F1/confirmations/ask:1 HTTP/1.1");
}

#[tokio::test]
async fn a_server_that_repeats_an_event_is_refused() {
    let repeats = "HTTP/1.1 200 OK\r\n\r\n\
        {\"type\":\"CUSTOM\",\"seq\":3,\"sessionId\":\"s\",\"createdAt\":\"2026-11-21T10:00:00Z\",\"name\":\"a\",\"value\":1}\n\
        {\"type\":\"CUSTOM\",\"seq\":3,\"sessionId\":\"s\",\"createdAt\":\"2026-11-21T10:00:00Z\",\"name\":\"a\",\"value\":1}\n";
    let mut events = server(repeats, 0).open("s").unwrap().events(EventQuery::default());
    assert_eq!(events.next().await.unwrap().unwrap().seq, 3);
    let error = events.next().await.unwrap().unwrap_err().to_string();
    assert!(error.ends_with("event 3 came after event 3"), "{error}");
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn an_event_with_an_invalid_id_is_refused() {
    let invalid = "HTTP/1.1 200 OK\r\n\r\n\
        {\"type\":\"CUSTOM\",\"seq\":3,\"sessionId\":\"s s\",\"createdAt\":\"2026-11-21T10:00:00Z\",\"name\":\"a\",\"value\":1}\n";
    let mut events = server(invalid, 0).open("s").unwrap().events(EventQuery::default());
    let error = events.next().await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }), "{error}");
    assert!(error.to_string().contains("invalid session id \"s s\": ' ' at character 2"), "{error}");
    assert!(events.next().await.is_none());
}

#[test]
fn a_session_is_opened_by_its_id() {
    let server = at("127.0.0.1:1".parse().unwrap());
    assert_eq!(server.open("s").unwrap().id(), &"s");
    let error = server.open("acme/s").unwrap_err();
    assert!(error.has_code(&Code::BadId), "{error}");
    assert!(error.to_string().starts_with("invalid session id \"acme/s\": '/' at character 5"), "{error}");
}

/// Returns a server that gives each connection the next of these responses, and then the last one
/// again.
fn answers(responses: &'static [&'static str]) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let again = responses.last().into_iter().cycle();
        for response in responses.iter().chain(again) {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            lines.find(String::is_empty);
            let _ = stream.write_all(response.as_bytes());
        }
    });
    at(address)
}

const EMPTY: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";

const GONE_OF_ALL: &str = "HTTP/1.1 410 Gone\r\nconnection: close\r\n\r\n\
    {\"status\":410,\"code\":\"gone\",\"detail\":\"gone\",\"oldest_seq\":18446744073709551615}";

const CUT_EVENT: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"seq\":3,\"truncated\":true}\n";

const ANOTHER_EVENT: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n\
    {\"type\":\"CUSTOM\",\"seq\":9,\"sessionId\":\"s\",\"createdAt\":\"2026-11-21T10:00:00Z\",\"name\":\"a\",\"value\":1}";

#[tokio::test]
async fn a_server_that_ends_each_stream_at_once_is_asked_a_few_times() {
    let mut events = answers(&[EMPTY]).open("s").unwrap().events(EventQuery::default());
    let began = tokio::time::Instant::now();
    let error = events.next().await.unwrap().unwrap_err().to_string();
    assert!(error.ends_with("it ends each stream of events before it sends one"), "{error}");
    assert!(began.elapsed() >= Duration::from_secs(5), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_page_of_runs_that_is_its_own_next_one_is_refused() {
    const PAGE: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"items\":[],\"next\":\"5\"}";
    let error = answers(&[PAGE]).open("s").unwrap().runs().await.unwrap_err().to_string();
    assert!(error.ends_with("a page of runs names itself as the next one"), "{error}");
}

#[tokio::test]
async fn a_server_that_has_deleted_all_events_there_can_be_is_no_panic() {
    let mut events = answers(&[GONE_OF_ALL]).open("s").unwrap().events(EventQuery::default());
    assert_eq!(events.next().await.unwrap().unwrap().seq, u64::MAX - 1);
    let error = events.next().await.unwrap().unwrap_err().to_string();
    assert!(error.ends_with("gone"), "{error}");
    let mut events = answers(&[GONE_OF_ALL])
        .open("s")
        .unwrap()
        .events(EventQuery { after: Some(u64::MAX), ..EventQuery::default() });
    assert!(events.next().await.unwrap().is_err());
}

#[tokio::test]
async fn a_large_event_is_the_one_that_was_requested() {
    let mut events = answers(&[CUT_EVENT, ANOTHER_EVENT]).open("s").unwrap().events(EventQuery::default());
    let error = events.next().await.unwrap().unwrap_err().to_string();
    assert!(error.ends_with("the response for event 3 has event 9"), "{error}");
}
