//! One tenant attacks, and another does not notice.

use std::{
    thread,
    time::{Duration, Instant},
};

use mainstem::journal::SqliteJournal;
use mainstem_server::Tokens;
use reqwest::Client;
use serde_json::{Value, json};

use crate::{
    alone,
    attack::{Attack, Attacker, Target},
    clients::eventually,
    is_slow,
    player::{LONG, Player},
    process::Held,
    rig::{Rig, TOKEN, fleet, ms},
};

const ACME: &str = "the-token-of-tenant-acme";
const GLOBEX: &str = "the-token-of-tenant-globex";

/// How many of the victim's runs are measured at a time.
const RUNS: usize = 100;

/// By how much the p99 may grow: measured in an optimised build, on a machine without other load.
const GROWTH: u32 = 2;

/// What a run may take elsewhere, where attackers and server share two cores and unoptimised code:
/// it says only that nothing is stuck.
const STUCK: Duration = ms(10_000);

/// Schemas compiled at once would need a thread each.
const THREADS: usize = 12;

#[test]
fn a_tenant_that_attacks_does_not_keep_another_from_working() {
    alone(async {
        let together = vec![Attack::Flood, Attack::Schemas, Attack::NeverRead, Attack::Endless];
        let mut all = vec![vec![Attack::Schemas], together];
        if is_slow() {
            all.extend(
                [Attack::Flood, Attack::NeverRead, Attack::Endless, Attack::Large].map(|one| vec![one]),
            );
        }
        let mut noticed = Vec::new();
        for attacks in all {
            let Measured { calm, attacked, served, threads } = measure(&attacks).await;
            let ratio = attacked.p99.as_secs_f64() / calm.p99.as_secs_f64();
            println!(
                "{attacks:?}, served {served}: calm {calm:.1?}, attacked {attacked:.1?}, p99 {ratio:.1} of calm, {threads} more threads"
            );
            assert!(attacks != [Attack::Schemas] || threads <= THREADS, "{threads} more threads");
            assert!(attacked.p99 <= STUCK, "{attacks:?}: {attacked:?}");
            if is_slow() && !cfg!(debug_assertions) && attacked.p99 > calm.p99 * GROWTH {
                noticed.push(attacks);
            }
        }
        assert!(noticed.is_empty(), "the victim notices {noticed:?}");
    });
}

/// How long the victim's runs took.
#[derive(Debug)]
struct Took {
    p50: Duration,
    p99: Duration,
}

struct Measured {
    calm: Took,
    attacked: Took,
    /// How often the attacker was served.
    served: usize,
    /// How many threads the process had more at the end of the attack.
    threads: usize,
}

/// The victim's runs before, during and after attacks; calm is the slower of before and after.
async fn measure(attacks: &[Attack]) -> Measured {
    let dir = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(dir.path().join("j.db")).unwrap();
    let harness = fleet(Player).with_ids(mainstem::event::RandomIds).with_journal(journal);
    let harness = harness.with_workspace(dir.path());
    let tokens = Tokens::new().with_token(TOKEN, None).unwrap();
    let tokens = tokens.with_token(ACME, Some("acme")).unwrap().with_token(GLOBEX, Some("globex")).unwrap();
    let rig = Rig::start(harness, |builder| builder.with_tokens(tokens.clone())).await;
    let target = |token| Target { url: rig.url.clone(), token };
    let (victim, attacker) = (target(ACME), target(GLOBEX));
    let work = || on_a_thread(victim.clone(), async |victim| work(&victim).await);
    work().await;
    let before = work().await;
    let threads = Held::now().threads;
    let attackers: Vec<_> = attacks.iter().map(|attack| Attacker::start(*attack, &attacker)).collect();
    let served = || attackers.iter().map(Attacker::served).sum();
    eventually("every attacker is served", async || attackers.iter().all(|one| one.served() > 0)).await;
    let attacked = work().await;
    let served: usize = served();
    let threads = Held::now().threads.saturating_sub(threads);
    drop(attackers);
    eventually("the attacker's runs end", async || rig.figure("runs_active").await == 0).await;
    let after = work().await;
    rig.stop_now().await;
    let calm = Took { p50: before.p50.max(after.p50), p99: before.p99.max(after.p99) };
    Measured { calm, attacked, served, threads }
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

/// The victim's work: runs, each of which has to succeed. Their model says 20 words, one a
/// millisecond, which is faster than any that is paid for.
async fn work(victim: &Target) -> Took {
    let client = Client::new();
    let (mut took, until) = (Vec::new(), Instant::now() + ms(if is_slow() { 5_000 } else { 1_500 }));
    for number in (0..RUNS).take_while(|_| Instant::now() < until) {
        let begun = Instant::now();
        let request = client.post(format!("{}/v1/sessions/own-{}/runs", victim.url, number % 8));
        let request = request.bearer_auth(victim.token).header("prefer", "wait=30");
        let run = request.json(&json!({ "input": LONG })).send().await.unwrap();
        let run: Value = run.json().await.unwrap();
        assert_eq!(run["status"], "success", "run {number}: {run}");
        took.push(begun.elapsed());
    }
    took.sort_unstable();
    let at = |percent: usize| took[(took.len() - 1) * percent / 100];
    Took { p50: at(50), p99: at(99) }
}
