//! A cassette between a socket and a scripted vendor: the bytes that each side sees, and those on
//! the tape.

mod faults;
mod keys;
mod modes;

use std::{fs, path::PathBuf, time::Duration};

use mainstem_http::Url;
use mainstem_testing::raw::{self, Seen, Server, Step};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, timeout},
};

use super::*;

/// The directory of a test's tape.
struct Tapes(TempDir);

impl Tapes {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("new/tape.jsonl")
    }

    fn builder(&self, upstream: &str, mode: Mode) -> CassetteBuilder {
        Cassette::builder(self.path(), upstream).with_mode(mode)
    }

    async fn open(&self, upstream: &str, mode: Mode) -> Cassette {
        self.builder(upstream, mode).open().await.unwrap()
    }

    /// Replays the tape, without a vendor.
    async fn replay(&self) -> Cassette {
        self.open("http://127.0.0.1:1/v1", Mode::Replay).await
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path()).unwrap_or_default()
    }
}

/// Sends a request, and leaves the connection open.
async fn send(cassette: &Cassette, head: &str, body: &str) -> TcpStream {
    let url = Url::parse(cassette.url()).unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", url.port().unwrap())).await.unwrap();
    let length = body.len();
    let request = format!("{head}\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn post(cassette: &Cassette, body: &str) -> TcpStream {
    send(cassette, "POST /v1/chat HTTP/1.1", body).await
}

/// Returns everything up to the end of the connection.
async fn rest(mut stream: TcpStream) -> String {
    let mut read = Vec::new();
    _ = stream.read_to_end(&mut read).await;
    String::from_utf8_lossy(&read).into_owned()
}

/// Returns everything up to this text.
async fn until(stream: &mut TcpStream, end: &str) -> String {
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains(end) {
        assert!(stream.read_buf(&mut read).await.unwrap() > 0, "{}", String::from_utf8_lossy(&read));
    }
    String::from_utf8(read).unwrap()
}

async fn ask(cassette: &Cassette, body: &str) -> String {
    rest(post(cassette, body).await).await
}

/// Returns the body of a response of one piece.
async fn body_of(cassette: &Cassette, body: &str) -> String {
    let response = ask(cassette, body).await;
    response.split("\r\n\r\n").nth(1).unwrap().split("\r\n").nth(1).unwrap_or_default().to_owned()
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const CHUNKED: &str = "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n";

/// Returns a response in these chunks, each sent on its own.
fn chunks(chunks: &[&[u8]]) -> Vec<Step> {
    let paced = chunks.iter().flat_map(|bytes| [Step::Pause(ms(20)), raw::chunk(bytes)]);
    [raw::head("200 OK", CHUNKED)]
        .into_iter()
        .chain(paced)
        .chain([Step::Send(b"0\r\n\r\n".to_vec())])
        .collect()
}

/// Returns a short response.
fn short(text: &str) -> Vec<Step> {
    raw::whole("200 OK", "content-type: text/plain\r\n", text)
}

#[tokio::test]
async fn chunks_are_the_same_byte_by_byte_for_the_vendor_the_client_and_the_tape() {
    let pieces: [&[u8]; 4] = [b"data: gr", b"\xc3", b"\xb6\xc3\x9fe\n\n", b"data: [DONE]\n\n"];
    let (tapes, mut vendor) = (Tapes::new(), Server::start(vec![chunks(&pieces)]).await);
    let cassette = tapes.open(&format!("{}/v1/", vendor.url()), Mode::Record).await;
    assert!(cassette.url().ends_with("/v1"), "{}", cassette.url());
    let recorded = ask(&cassette, r#"{"b": 1, "a": 2}"#).await;
    let requested = vendor.request().await;
    assert!(
        requested.starts_with("POST /v1/chat HTTP/1.1\r\n") && requested.ends_with(r#"{"b": 1, "a": 2}"#),
        "{requested}"
    );
    cassette.finish().await.unwrap();
    let body = "8\r\ndata: gr\r\n1\r\n\u{fffd}\r\n6\r\n\u{fffd}ße\n\n\r\nE\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\ntransfer-encoding: chunked";
    assert_eq!(recorded, format!("{head}\r\n\r\n{body}"));
    drop(vendor);

    let cassette = tapes.replay().await;
    assert_eq!(ask(&cassette, r#"{"a": 2, "b": 1}"#).await, recorded);
    cassette.finish().await.unwrap();
}

#[tokio::test]
async fn a_chunk_is_passed_on_before_the_next_one_comes() {
    let mut script = vec![raw::head("200 OK", CHUNKED), raw::chunk(b"first"), Step::Pause(ms(100))];
    script.extend([raw::chunk(b"second"), Step::AwaitClose]);
    let (tapes, mut vendor) = (Tapes::new(), Server::start(vec![script]).await);
    let cassette = tapes.open(&vendor.url(), Mode::Record).await;
    let mut client = post(&cassette, "").await;
    assert!(!until(&mut client, "first").await.contains("second"));
    until(&mut client, "second").await;
    // The client leaves, so the vendor's connection is closed; the response so far is recorded.
    vendor.request().await;
    drop(client);
    assert_eq!(vendor.next().await, Seen::Closed);
    cassette.finish().await.unwrap();
    assert!(tapes.text().contains(r#""text":"second"}],"end":"left""#), "{}", tapes.text());

    // In the replay, the response stays open where the client left.
    let cassette = tapes.replay().await;
    let mut client = post(&cassette, "").await;
    until(&mut client, "second").await;
    assert!(timeout(ms(50), client.read_u8()).await.is_err(), "nothing comes, nor does it end");
    cassette.finish().await.unwrap();
    assert_eq!(timeout(ms(1000), rest(client)).await.unwrap(), "", "the end of the cassette ends it");
}

#[tokio::test]
async fn a_client_that_leaves_when_it_has_all_has_the_whole_response() {
    let script = vec![
        raw::head("200 OK", CHUNKED),
        raw::chunk(b"[DONE]"),
        Step::Pause(ms(50)),
        Step::Send(b"0\r\n\r\n".to_vec()),
    ];
    let (tapes, vendor) = (Tapes::new(), Server::start(vec![script]).await);
    let cassette = tapes.open(&vendor.url(), Mode::Record).await;
    until(&mut post(&cassette, "").await, "[DONE]").await;
    cassette.finish().await.unwrap();
    assert!(tapes.text().contains("[DONE]") && !tapes.text().contains(r#""end""#), "{}", tapes.text());
}

#[tokio::test]
async fn the_vendor_gets_what_the_client_sends_but_what_would_hide_the_response() {
    let (tapes, mut vendor) = (Tapes::new(), Server::start(vec![short("1")]).await);
    let cassette = tapes.open(&vendor.url(), Mode::Record).await;
    let head =
        "PUT /a%20b/c:d?e=f%2Fg&h HTTP/1.1\r\nx-own: 1\r\nauthorization: Bearer abc\r\naccept-encoding: gzip";
    rest(send(&cassette, head, "some body").await).await;
    let requested = vendor.request().await;
    assert!(
        requested.starts_with("PUT /a%20b/c:d?e=f%2Fg&h HTTP/1.1\r\n")
            && requested.ends_with("\r\n\r\nsome body"),
        "{requested}"
    );
    let has = |header: &str| requested.contains(&format!("\r\n{header}"));
    assert!(
        has("x-own: 1") && has("authorization: Bearer abc") && has(&format!("host: {}", vendor.host())),
        "{requested}"
    );
    assert!(!has("accept-encoding") && !has("connection: close"), "{requested}");
    cassette.finish().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn pauses_are_replayed_on_request() {
    let tapes = Tapes::new();
    fs::create_dir(tapes.path().parent().unwrap()).unwrap();
    let line = r#"{"request":{"method":"POST","path":"/v1/chat"},"response":{"status":200,"chunks":[{"ms":60000,"text":"a"},{"ms":5000,"text":"b"}]}}"#;
    fs::write(tapes.path(), format!("{{\"mainstem_cassette\":1}}\n{line}\n")).unwrap();
    let play = async |builder: CassetteBuilder| {
        let cassette = builder.open().await.unwrap();
        let start = Instant::now();
        assert!(ask(&cassette, "").await.ends_with("1\r\na\r\n1\r\nb\r\n0\r\n\r\n"));
        cassette.finish().await.unwrap();
        start.elapsed()
    };
    let builder = tapes.builder("http://127.0.0.1:1", Mode::Replay);
    assert!(play(builder.clone().with_pauses(true)).await >= ms(65_000));
    assert!(play(builder).await < ms(5000));
}

#[tokio::test]
async fn each_response_is_played_once_in_order() {
    let (tapes, vendor) = (Tapes::new(), Server::start(["1", "2", "3"].map(short).to_vec()).await);
    let cassette = tapes.open(&vendor.url(), Mode::Record).await;
    for (body, expected) in [("\"a\"", "1"), ("\"b\"", "2"), ("\"a\"", "3")] {
        assert_eq!(body_of(&cassette, body).await, expected);
    }
    cassette.finish().await.unwrap();

    let cassette = tapes.replay().await;
    for (body, expected) in [("\"b\"", "2"), ("\"a\"", "1"), ("\"a\"", "3")] {
        assert_eq!(body_of(&cassette, body).await, expected);
    }
    let response = ask(&cassette, "\"a\"").await;
    assert!(
        response.starts_with("HTTP/1.1 417 ") && response.contains("line 4 is the same, but has been played"),
        "{response}"
    );
    assert_eq!(cassette.misses().len(), 1);
    assert!(matches!(cassette.finish().await, Err(CassetteError::Missed { .. })));
}

#[tokio::test]
async fn many_clients_at_once_get_each_their_own() {
    let (tapes, all) = (Tapes::new(), (0..20).map(|number| number.to_string()).collect::<Vec<_>>());
    let vendor = Server::start(all.iter().map(|text| short(text)).collect()).await;
    let cassette = tapes.open(&vendor.url(), Mode::Record).await;
    for text in &all {
        assert_eq!(body_of(&cassette, text).await, *text);
    }
    cassette.finish().await.unwrap();
    let cassette = tapes.replay().await;
    let responses =
        futures_util::future::join_all(all.iter().rev().map(|text| body_of(&cassette, text))).await;
    assert!(responses.iter().eq(all.iter().rev()), "{responses:?}");
    cassette.finish().await.unwrap();
}
