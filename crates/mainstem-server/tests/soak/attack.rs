//! What a hostile tenant does to a server, until it is told to stop.

use std::time::Duration;

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
}

impl Attack {
    /// Attacks until the token is cancelled; returns how many requests were answered.
    pub(crate) async fn carry_out(self, target: &Target, stop: &CancellationToken) -> usize {
        match self {
            Self::Flood => {
                join_all((0..32).map(|number| flood(target, stop, number, json!({})))).await.iter().sum()
            }
            Self::Schemas => {
                let schemas = [patterns(60), doubling(24), json!({ "type": "integer" })];
                let all = (0..12).map(|number| {
                    let options = json!({ "output_schema": schemas[number % schemas.len()] });
                    flood(target, stop, 100 + number, options)
                });
                join_all(all).await.iter().sum()
            }
            Self::NeverRead => never_read(target, stop).await,
            Self::Endless => endless(target, stop).await,
        }
    }
}

/// Begins runs in sessions of its own, one after the other.
async fn flood(target: &Target, stop: &CancellationToken, number: usize, options: Value) -> usize {
    let client = Client::new();
    let mut answered = 0;
    while !stop.is_cancelled() {
        let path = format!("/v1/sessions/flood-{number}-{}/runs", answered % 50);
        let request = client.post(format!("{}{path}", target.url)).bearer_auth(target.token);
        let request = request.json(&json!({ "input": LONG, "options": options, "queue": true }));
        if stop.run_until_cancelled(request.send()).await.is_some_and(|answer| answer.is_ok()) {
            answered += 1;
        }
    }
    answered
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
async fn never_read(target: &Target, stop: &CancellationToken) -> usize {
    let host = target.url.strip_prefix("http://").unwrap();
    let mut held = Vec::new();
    for number in 0..400 {
        let path = ["/openapi.json", "/v1/sessions/flood-0-0/events"][number % 2];
        let ask =
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\n\r\n", target.token);
        if stop.is_cancelled() {
            break;
        }
        let Ok(mut stream) = TcpStream::connect(host).await else { continue };
        // The server may have cut it off already.
        let _ = stream.write_all(ask.repeat(60).as_bytes()).await;
        held.push(stream);
    }
    stop.cancelled().await;
    held.len()
}

/// Begins runs that never end, as many as it gets, with a reader for each; begins more when refused.
async fn endless(target: &Target, stop: &CancellationToken) -> usize {
    let client = Client::new();
    let one = async |number: usize| {
        let mut read = 0;
        while !stop.is_cancelled() {
            let path = format!("/v1/sessions/endless-{number}/runs");
            let request = client.post(format!("{}{path}", target.url)).bearer_auth(target.token);
            let request = request.header("accept", "text/event-stream");
            let request =
                request.json(&json!({ "input": ENDLESS, "options": { "on_disconnect": "cancel" } }));
            let Some(Ok(mut answer)) = stop.run_until_cancelled(request.send()).await else { continue };
            while let Some(Ok(Some(_))) = stop.run_until_cancelled(answer.chunk()).await {
                read += 1;
            }
            pause(stop, ms(20)).await;
        }
        read
    };
    join_all((0..64).map(one)).await.iter().sum()
}

async fn pause(stop: &CancellationToken, time: Duration) {
    stop.run_until_cancelled(tokio::time::sleep(time)).await;
}
