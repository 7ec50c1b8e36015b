//! Runs of all kinds leave nothing behind: no gauge, file or thread, no memory, and the last is as
//! fast as the first.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream};
use mainstem::journal::SqliteJournal;

use crate::{
    alone,
    clients::{Client, RUNS, eventually},
    is_slow,
    player::Player,
    process::Held,
    rig::{Rig, fleet, ms},
};

/// How many sessions are used at once.
const AT_ONCE: usize = 8;

#[test]
fn ten_thousand_runs_leave_nothing_behind() {
    alone(async {
        let (early, sessions) = if is_slow() { (100, 500) } else { (8, 24) };
        let dir = tempfile::tempdir().unwrap();
        let journal = SqliteJournal::open(dir.path().join("j.db")).unwrap();
        let harness = fleet(Player).with_ids(mainstem::event::RandomIds).with_journal(journal);
        let rig = Rig::start(harness, |builder| builder.with_idle_timeout(ms(200))).await;
        let begun = Instant::now();
        let mut took = use_sessions(&rig, 0..early).await;
        settle(&rig).await;
        let before = Held::now();
        took.extend(use_sessions(&rig, early..sessions).await);
        settle(&rig).await;
        let after = Held::now();
        for (outcome, of_session) in [("success", 16), ("cancelled", 4)] {
            let figure = rig.figure(&format!("runs_total{{outcome=\"{outcome}\"}}")).await;
            assert_eq!(figure, (sessions * of_session) as u64, "{outcome}");
        }
        let part = (took.len() / 20).max(AT_ONCE);
        let (first, last) = (median(&took[..part]), median(&took[took.len() - part..]));
        println!(
            "{} runs in {:.1?}; before {before:?}, after {after:?}; a run took {first:.1?} at first, {last:.1?} at last",
            sessions * RUNS,
            begun.elapsed()
        );
        assert_eq!(after.files, before.files, "{before:?} {after:?}");
        // Idle connections of the client, of which both ends are here, and threads for blocking
        // work, come and go by a few.
        assert!(after.sockets <= before.sockets + 2 * AT_ONCE, "{before:?} {after:?}");
        assert!(after.threads <= before.threads + AT_ONCE, "{before:?} {after:?}");
        assert!(after.mib <= before.mib * 3 / 2 + 16, "{before:?} {after:?}");
        assert!(last <= (first * 3).max(ms(30)), "first {first:?}, last {last:?}");
    });
}

/// Visits sessions, deletes every second one and leaves the others to be closed when idle.
async fn use_sessions(rig: &Rig, numbers: Range<usize>) -> Vec<Duration> {
    let visits = numbers.map(async |number| {
        let client = Client::new(rig, format!("s-{number}"));
        let took = client.visit().await;
        if number % 2 == 0 {
            client.delete().await;
        }
        took
    });
    let visits: Vec<_> = stream::iter(visits).buffer_unordered(AT_ONCE).collect().await;
    visits.into_iter().flatten().collect()
}

/// Waits until every gauge is zero, and until the files of closed sessions are closed, which a
/// thread does later.
async fn settle(rig: &Rig) {
    for gauge in ["runs_active", "readers", "sessions_open"] {
        eventually(&format!("{gauge} is 0"), async || rig.figure(gauge).await == 0).await;
    }
    eventually("the number of files is steady", async || {
        let files = Held::now().files;
        tokio::time::sleep(ms(300)).await;
        Held::now().files == files
    })
    .await;
}

fn median(took: &[Duration]) -> Duration {
    let mut took = took.to_vec();
    took.sort_unstable();
    took[took.len() / 2]
}
