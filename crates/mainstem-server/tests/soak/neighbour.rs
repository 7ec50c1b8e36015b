//! One tenant attacks, and another does not notice.

use std::{
    thread,
    time::{Duration, Instant},
};

use mainstem::journal::SqliteJournal;
use mainstem_server::Tokens;
use reqwest::Client;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    alone,
    attack::{ALL, Attack, Target},
    clients::eventually,
    is_slow,
    player::Player,
    rig::{Rig, TOKEN, fleet, ms},
};

const ACME: &str = "the-token-of-tenant-acme";
const GLOBEX: &str = "the-token-of-tenant-globex";

#[test]
fn a_tenant_that_attacks_does_not_keep_another_from_working() {
    alone(async {
        let runs = if is_slow() { 400 } else { 100 };
        let mut attacks: Vec<Vec<Attack>> = vec![ALL.to_vec()];
        if let Ok(only) = std::env::var("ATTACK") {
            attacks = vec![vec![ALL[only.parse::<usize>().unwrap()]]];
        } else if is_slow() {
            attacks.extend(ALL.map(|one| vec![one]));
        }
        for attacks in attacks {
            let (calm, attacked) = measure(&attacks, runs).await;
            let ratio = attacked.p99.as_secs_f64() / calm.p99.as_secs_f64();
            println!("{attacks:?}: calm {calm:?}, attacked {attacked:?}, p99 {ratio:.1} of calm");
        }
    });
}

/// How long the victim's runs took.
#[derive(Debug)]
struct Took {
    runs: usize,
    p50: Duration,
    p99: Duration,
}

/// The victim's runs before and during attacks.
async fn measure(attacks: &[Attack], runs: usize) -> (Took, Took) {
    let dir = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(dir.path().join("j.db")).unwrap();
    let harness = fleet(Player).ids(mainstem::event::RandomIds).journal(journal);
    let harness = harness.workspace(dir.path()).build().unwrap();
    let tokens = Tokens::new().with(TOKEN, None).unwrap();
    let tokens = tokens.with(ACME, Some("acme")).unwrap().with(GLOBEX, Some("globex")).unwrap();
    let rig = Rig::start(harness.clone(), |builder| builder.tokens(tokens)).await;
    let target = |token| Target { url: rig.url.clone(), token };
    let (victim, attacker) = (target(ACME), target(GLOBEX));
    on_a_thread(victim.clone(), async move |victim| work(&victim, 24).await).await;
    let calm = on_a_thread(victim.clone(), async move |victim| work(&victim, runs).await).await;
    let stop = CancellationToken::new();
    let attackers: Vec<_> = attacks
        .iter()
        .map(|attack| {
            let (attack, stop) = (*attack, stop.clone());
            on_a_thread(attacker.clone(), async move |target| attack.carry_out(&target, &stop).await)
        })
        .collect();
    tokio::time::sleep(ms(300)).await;
    let attacked = on_a_thread(victim, async move |victim| work(&victim, runs).await).await;
    println!("{attacks:?} {calm:?} {attacked:?}");
    stop.cancel();
    for attacker in attackers {
        let answered = attacker.await;
        assert!(answered > 0, "{attacks:?} reached the server");
        println!("answered {answered}");
    }
    eventually("the attacker's runs end", async || rig.figure("runs_active").await == 0).await;
    rig.stop.cancel();
    harness.shutdown(ms(1_000)).await;
    (calm, attacked)
}

/// Runs clients on a thread of their own, so that they do not wait for the server's.
fn on_a_thread<T: Send + 'static>(
    target: Target,
    clients: impl AsyncFnOnce(Target) -> T + Send + 'static,
) -> impl Future<Output = T> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _ = sender.send(runtime.block_on(clients(target)));
    });
    async move { receiver.await.unwrap() }
}

/// The victim's work: runs, each of which has to succeed.
async fn work(victim: &Target, runs: usize) -> Took {
    let client = Client::new();
    let mut took = Vec::new();
    let until = Instant::now() + ms(6_000);
    for number in 0..runs {
        if Instant::now() > until {
            break;
        }
        let begun = Instant::now();
        let request = client.post(format!("{}/v1/sessions/own-{}/runs", victim.url, number % 8));
        let request = request.bearer_auth(victim.token).header("prefer", "wait=30");
        let run = request.json(&json!({ "input": "go" })).send().await.unwrap();
        let run: Value = run.json().await.unwrap();
        assert_eq!(run["status"], "success", "run {number}: {run}");
        took.push(begun.elapsed());
    }
    took.sort_unstable();
    let at = |percent: usize| took[(took.len() - 1) * percent / 100];
    Took { runs: took.len(), p50: at(50), p99: at(99) }
}
