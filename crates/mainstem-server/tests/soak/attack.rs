//! What a hostile tenant does to a server, until it is told to stop.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures_util::future::join_all;
use reqwest::Client;
use serde_json::{Map, Value, json};
use tokio::{io::AsyncWriteExt, net::TcpStream};
use tokio_util::sync::CancellationToken;

use crate::{
    player::{ENDLESS, LONG},
    rig::ms,
};

/// One way to attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attack {
    /// Runs, begun on 32 connections as fast as they are answered.
    Flood,
    /// Forms of answers that are expensive to compile.
    Schemas,
    /// Connections that ask for streams and large answers and never read.
    NeverRead,
    /// Runs whose model never stops, and readers of them.
    Endless,
}

pub(crate) const ALL: [Attack; 4] = [Attack::Flood, Attack::Schemas, Attack::NeverRead, Attack::Endless];

/// Where to, and on whose behalf.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) url: String,
    pub(crate) token: &'static str,
    /// How often the attacker was served.
    pub(crate) served: Arc<AtomicUsize>,
}

impl Target {
    fn count(&self, was_served: bool) {
        self.served.fetch_add(usize::from(was_served), Ordering::Relaxed);
    }
}

impl Attack {
    /// Attacks until the token is cancelled.
    pub(crate) async fn carry_out(self, target: &Target, stop: &CancellationToken) {
        let client = Client::new();
        match self {
            Self::Flood => {
                let all = (0..32).map(|number| flood(&client, target, stop, number, json!({})));
                join_all(all).await;
            }
            Self::Schemas => {
                let schemas = [patterns(60), doubling(24), json!({ "type": "integer" })];
                let all = (0..12).map(|number| {
                    let options = json!({ "output_schema": schemas[number % schemas.len()] });
                    flood(&client, target, stop, 100 + number, options)
                });
                join_all(all).await;
            }
            Self::NeverRead => never_read(target, stop).await,
            Self::Endless => endless(&client, target, stop).await,
        }
    }
}

/// Begins runs in sessions of its own, one after the other.
async fn flood(client: &Client, target: &Target, stop: &CancellationToken, number: usize, options: Value) {
    for begun in 0.. {
        let url = format!("{}/v1/sessions/flood-{number}-{}/runs", target.url, begun % 50);
        let request = client.post(url).bearer_auth(target.token);
        let request = request.json(&json!({ "input": LONG, "options": options, "queue": true }));
        match stop.run_until_cancelled(request.send()).await {
            Some(answer) => target.count(answer.is_ok()),
            None => return,
        }
    }
}

/// A form with so many expensive patterns.
fn patterns(count: usize) -> Value {
    let property = |number: usize| {
        (format!("p{number}"), json!({ "type": "string", "pattern": format!("\\p{{L}}{{150}}q{number}") }))
    };
    json!({ "type": "object", "properties": (0..count).map(property).collect::<Map<_, _>>() })
}

/// A form that is checked twice as often at each level.
fn doubling(levels: usize) -> Value {
    let level = |number: usize| {
        let next = json!({ "$ref": format!("#/$defs/a{}", number + 1) });
        (format!("a{number}"), json!({ "allOf": [next.clone(), next] }))
    };
    let mut defs: Map<_, _> = (0..levels).map(level).collect();
    defs.insert(format!("a{levels}"), json!({ "type": "string" }));
    json!({ "$ref": "#/$defs/a0", "$defs": defs })
}

/// Holds connections with requests whose answers it does not read.
async fn never_read(target: &Target, stop: &CancellationToken) {
    let host = target.url.strip_prefix("http://").unwrap();
    let mut held = Vec::new();
    for number in 0..400 {
        let path = ["/openapi.json", "/v1/sessions/own-0/events"][number % 2];
        let token = target.token;
        let ask = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n");
        if stop.is_cancelled() {
            return;
        }
        let Ok(mut stream) = TcpStream::connect(host).await else { continue };
        // The server may have cut it off already.
        target.count(stream.write_all(ask.repeat(60).as_bytes()).await.is_ok());
        held.push(stream);
    }
    stop.cancelled().await;
}

/// Begins runs that never end, as many as it gets, and reads them; again and again where it is refused.
async fn endless(client: &Client, target: &Target, stop: &CancellationToken) {
    let one = async |number: usize| {
        loop {
            let request = client.post(format!("{}/v1/sessions/endless-{number}/runs", target.url));
            let request = request.bearer_auth(target.token).header("accept", "text/event-stream");
            let request =
                request.json(&json!({ "input": ENDLESS, "options": { "on_disconnect": "cancel" } }));
            let Some(answer) = stop.run_until_cancelled(request.send()).await else { return };
            let Ok(mut answer) = answer else { continue };
            while let Some(Ok(Some(_))) = stop.run_until_cancelled(answer.chunk()).await {
                target.count(true);
            }
            stop.run_until_cancelled(tokio::time::sleep(ms(20))).await;
        }
    };
    join_all((0..64).map(one)).await;
}
