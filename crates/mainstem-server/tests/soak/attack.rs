//! What a hostile tenant does to a server, in a process of its own.

use std::{
    convert::Infallible,
    future::pending,
    io::{BufRead, BufReader, Write, stdout},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use futures_util::future::join_all;
use reqwest::Client;
use serde_json::{Map, Value, json};
use tokio::{io::AsyncWriteExt, net::TcpStream};

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
    /// Runs with inputs almost as large as a body may be.
    Large,
}

/// All attacks, which their processes know by number.
const ALL: [Attack; 5] = [Attack::Flood, Attack::Schemas, Attack::NeverRead, Attack::Endless, Attack::Large];

/// Where to, and on whose behalf.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) url: String,
    pub(crate) token: &'static str,
}

/// The environment variable that makes [`attacks_until_it_is_killed`] attack: the number of the
/// attack, the token, and the address.
const ORDER: &str = "MAINSTEM_ATTACK";

/// A process that attacks until this is dropped.
pub(crate) struct Attacker {
    process: Child,
    /// How often it was served.
    served: Arc<AtomicUsize>,
}

impl Attacker {
    pub(crate) fn start(attack: Attack, target: &Target) -> Self {
        let number = ALL.iter().position(|one| *one == attack).unwrap();
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "attack::attacks_until_it_is_killed", "--nocapture"])
            .env(ORDER, format!("{number} {} {}", target.token, target.url))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (served, seen) = (Arc::new(AtomicUsize::new(0)), BufReader::new(process.stdout.take().unwrap()));
        let count = served.clone();
        thread::spawn(move || {
            let counts = seen
                .lines()
                .map_while(Result::ok)
                .filter_map(|line| line.strip_prefix("served ")?.parse().ok());
            counts.for_each(|served| count.store(served, Ordering::Relaxed));
        });
        Self { process, served }
    }

    pub(crate) fn served(&self) -> usize {
        self.served.load(Ordering::Relaxed)
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The process of an [`Attacker`]; as a test it does nothing. It has what processor time the server
/// and the victim leave: it would run on a machine of its own, and what it takes from the server is
/// measured, not what it takes from the machine.
#[test]
fn attacks_until_it_is_killed() {
    let Ok(order) = std::env::var(ORDER) else { return };
    let [number, token, url] = order.split(' ').collect::<Vec<_>>()[..] else { panic!("{order}") };
    let attack = ALL[number.parse::<usize>().unwrap()];
    #[cfg(target_os = "linux")]
    rustix::process::setpriority_process(None, 19).unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let attack = attack.carry_out(Order { url, token, served: AtomicUsize::new(0) });
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(attack);
}

/// An attack as its process has it.
struct Order<'a> {
    url: &'a str,
    token: &'a str,
    served: AtomicUsize,
}

impl Order<'_> {
    fn count(&self, was_served: bool) {
        self.served.fetch_add(usize::from(was_served), Ordering::Relaxed);
    }

    /// Prints how often the attacker was served, now and then.
    async fn report(&self) -> Infallible {
        let mut out = stdout();
        loop {
            tokio::time::sleep(ms(20)).await;
            writeln!(out, "served {}", self.served.load(Ordering::Relaxed)).unwrap();
        }
    }
}

impl Attack {
    /// Attacks until the process is killed.
    async fn carry_out(self, target: Order<'_>) {
        let client = Client::new();
        tokio::select! {
            never = target.report() => match never {},
            () = self.attack(&client, &target) => {}
        }
    }

    async fn attack(self, client: &Client, target: &Order<'_>) {
        match self {
            Self::Flood => {
                let all = (0..32).map(|number| flood(client, target, number, LONG, json!({})));
                join_all(all).await;
            }
            Self::Schemas => {
                let schemas = [patterns(60), doubling(24), json!({ "type": "integer" })];
                let all = (0..12).map(|number| {
                    let options = json!({ "output_schema": schemas[number % schemas.len()] });
                    flood(client, target, 100 + number, LONG, options)
                });
                join_all(all).await;
            }
            Self::Large => {
                let input = format!("{LONG}{}", "x".repeat(900_000));
                join_all((0..16).map(|number| flood(client, target, 200 + number, &input, json!({})))).await;
            }
            Self::NeverRead => never_read(target).await,
            Self::Endless => endless(client, target).await,
        }
    }
}

/// Begins runs in sessions of its own, one after the other.
async fn flood(client: &Client, target: &Order<'_>, number: usize, input: &str, options: Value) {
    for begun in 0.. {
        let url = format!("{}/v1/sessions/flood-{number}-{}/runs", target.url, begun % 50);
        let request = client.post(url).bearer_auth(target.token);
        let request = request.json(&json!({ "input": input, "options": options, "queue": true }));
        target.count(request.send().await.is_ok());
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
async fn never_read(target: &Order<'_>) {
    let host = target.url.strip_prefix("http://").unwrap();
    let mut held = Vec::new();
    for number in 0..400 {
        let path = ["/openapi.json", "/v1/sessions/own-0/events"][number % 2];
        let token = target.token;
        let ask = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n");
        let Ok(mut stream) = TcpStream::connect(host).await else { continue };
        // The server may have cut it off already.
        target.count(stream.write_all(ask.repeat(60).as_bytes()).await.is_ok());
        held.push(stream);
    }
    pending::<()>().await;
}

/// Begins runs that never end, as many as it gets, and reads them; again and again where it is
/// refused.
async fn endless(client: &Client, target: &Order<'_>) {
    let one = async |number: usize| {
        loop {
            let request = client.post(format!("{}/v1/sessions/endless-{number}/runs", target.url));
            let request = request.bearer_auth(target.token).header("accept", "text/event-stream");
            let request =
                request.json(&json!({ "input": ENDLESS, "options": { "on_disconnect": "cancel" } }));
            let Ok(mut answer) = request.send().await else { continue };
            while let Ok(Some(_)) = answer.chunk().await {
                target.count(true);
            }
            tokio::time::sleep(ms(20)).await;
        }
    };
    join_all((0..64).map(one)).await;
}
