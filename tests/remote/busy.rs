//! Servers that refuse for a moment: a request is sent again when they say, and has its effect
//! once.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use mainstem::{model::scripted::Turn, prelude::*, spec::Protocol};
use mainstem_testing::{laws, render};
use tokio::{
    io::{AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    time::Instant,
};

use crate::{
    anywhere::serve_with,
    chain::{builder, child_end, events, remote, scripts},
    support::ms,
};

/// What the front has refused: the first lines of requests.
type Refused = Arc<Mutex<HashSet<String>>>;

/// Refuses the first request of each kind, and forwards the others. Returns its address.
async fn front(server: &str, status: &'static str, wait: &'static str, refused: Refused) -> String {
    let server = server.trim_start_matches("http://").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    #[expect(clippy::disallowed_methods, reason = "ends with the test's runtime")]
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let (server, refused) = (server.clone(), refused.clone());
            #[expect(clippy::disallowed_methods, reason = "ends with the test's runtime")]
            tokio::spawn(async move {
                let line = first_line(&client).await;
                if refused.lock().unwrap().insert(line) {
                    let head =
                        format!("HTTP/1.1 {status}\r\n{wait}content-length: 0\r\nconnection: close\r\n\r\n");
                    let _ = client.write_all(head.as_bytes()).await;
                    return client.shutdown().await;
                }
                let mut server = TcpStream::connect(server).await?;
                copy_bidirectional(&mut client, &mut server).await.map(drop)
            });
        }
    });
    url
}

async fn first_line(client: &TcpStream) -> String {
    let mut head = vec![0; 1024];
    loop {
        let length = client.peek(&mut head).await.unwrap_or_default();
        let text = String::from_utf8_lossy(&head[..length]);
        match text.split_once("\r\n") {
            Some((line, _)) => return line.to_owned(),
            None if length == 0 => return String::new(),
            None => tokio::time::sleep(ms(1)).await,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_a_busy_server_refuses_is_sent_again_when_it_says() {
    use mainstem_server::Protocol as Served;
    let protocols = [
        (Protocol::Mainstem, None, ""),
        (Protocol::A2a, Some(Served::A2a), ""),
        (Protocol::LangGraph, Some(Served::LangGraph), "/lg/assistants/second"),
        (Protocol::AgentScope, Some(Served::AgentProtocol), ""),
    ];
    let busy = [
        ("429 Too Many Requests", "retry-after: 2\r\n", ms(2_000)),
        ("503 Service Unavailable", "", ms(500)),
    ];
    for ((protocol, served, path), (status, wait, at_least)) in
        protocols.into_iter().flat_map(|protocol| busy.map(|busy| (protocol, busy)))
    {
        let model = ScriptedModel::new().agent("second", [Turn::new().text("One.")]);
        let second = builder("second", model).build().unwrap();
        let (url, serving) = serve_with(second.clone(), served).await;
        let refused = Refused::default();
        let url = front(&url, status, wait, refused.clone()).await;
        let spec = remote("second", &format!("{url}{path}")).with_protocol(protocol);
        let first =
            builder("main", scripts("main", ScriptedModel::new())).with_subagent(spec).build().unwrap();
        let begun = Instant::now();
        let all = events(&first).await;
        let what = format!("{protocol}, {status}, {refused:?}\n{}", render(&all));
        laws(&all).unwrap_or_else(|broken| panic!("{broken}: {what}"));
        assert_eq!(child_end(&all, "second"), (Outcome::Success, ""), "{what}");
        assert!(begun.elapsed() >= at_least && begun.elapsed() < ms(20_000), "{:?}: {what}", begun.elapsed());
        let runs: usize = second.sessions().opened().iter().map(|session| session.runs().len()).sum();
        assert_eq!(runs, 1, "{what}");
        assert!(!refused.lock().unwrap().is_empty());
        serving.abort();
    }
}
