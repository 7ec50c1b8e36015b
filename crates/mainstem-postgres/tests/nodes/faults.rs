//! Faults: of the network, of the database, and of a node.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use futures_util::StreamExt;
use mainstem_event::{EventKind, Timestamp};
use mainstem_journal::{Job, Journal, Take};
use mainstem_testing::{
    Postgres, Proxy,
    journal::{emit_run, open_log, text_delta},
};
use tokio::time::{Instant, sleep};

use crate::{LEASE, join, take, texts};

#[tokio::test]
async fn a_node_that_is_cut_off_is_fenced_and_knows_it() {
    let server = Postgres::start();
    let proxy = Proxy::before([server.port()]).await;
    let (cut, there) = (join(&server.url_at(proxy.port())).await, join(&server.url()).await);
    let log = open_log(&cut.journal(), "s").await;
    let mut reader = log.attach();
    log.emit(text_delta("before"));
    cut.journal().flush().await.unwrap();
    proxy.cut();
    let begun = Instant::now();
    log.emit(text_delta("never"));
    // The other node gets the session when the lease is over, and the cut one knows by then.
    let next = take(&there, "s").await;
    assert!(begun.elapsed() < LEASE * 3, "{:?}", begun.elapsed());
    assert!(log.failure().unwrap().contains("could not renew its lease"), "{:?}", log.failure());
    assert_eq!(cut.journal().figures().unwrap().failures, 1);
    let seen: Vec<_> = [reader.next().await.unwrap(), reader.next().await.unwrap()].into();
    assert!(seen.iter().all(|event| !event.kind.is_durable()));
    next.emit(text_delta("after"));
    there.journal().flush().await.unwrap();
    let refused = cut.journal().open(&"other".parse().unwrap()).await.err().unwrap();
    assert!(refused.to_string().contains("could not renew its lease"), "{refused}");
    proxy.heal();
    // It joins again: other sessions can be opened, this one when it is free.
    drop((log, reader));
    let other = retried(|| async { cut.journal().open(&"other".parse().unwrap()).await }).await;
    drop(next);
    take(&cut, "s").await.emit(text_delta("again"));
    cut.journal().flush().await.unwrap();
    assert_eq!(texts(&there, "s").await, ["before", "after", "again"]);
    // Once, although what the session wrote was refused, too.
    assert_eq!(cut.journal().figures().unwrap().failures, 1);
    drop(other);
}

async fn retried<T, E: std::fmt::Display, F: Future<Output = Result<T, E>>>(attempt: impl Fn() -> F) -> T {
    for _ in 0..100 {
        if let Ok(done) = attempt().await {
            return done;
        }
        sleep(Duration::from_millis(50)).await;
    }
    attempt().await.map_err(|error| error.to_string()).unwrap()
}

#[tokio::test]
async fn cuts_lose_nothing_and_repeat_nothing() {
    let server = Postgres::start();
    let proxy = Proxy::before([server.port()]).await;
    let node = join(&server.url_at(proxy.port())).await;
    let log = open_log(&node.journal(), "s").await;
    // Many moments, among them that between a commit and its answer.
    for n in 0..120_u64 {
        emit_run(&log, &n.to_string(), 3);
        sleep(Duration::from_micros(n * 137 % 5_000)).await;
        if n % 4 == 0 {
            proxy.cut();
            sleep(Duration::from_millis(1)).await;
            proxy.heal();
        }
    }
    assert!(log.until_committed(600).await, "{:?}", log.failure());
    let committed = texts(&join(&server.url()).await, "s").await;
    assert_eq!(committed.len(), 360);
}

#[tokio::test]
async fn a_restart_of_the_database_loses_nothing() {
    let mut server = Postgres::start();
    let node = join(&server.url()).await;
    let log = open_log(&node.journal(), "s").await;
    for round in 0..3 {
        emit_run(&log, &round.to_string(), 50);
        server.stop();
        emit_run(&log, &format!("{round}-meanwhile"), 50);
        server.start_again();
        assert!(log.until_committed(104 * (round + 1)).await, "{:?}", log.failure());
    }
    assert_eq!(texts(&node, "s").await.len(), 300);
}

#[tokio::test]
async fn a_session_that_is_in_trouble_does_not_fail_the_others() {
    let server = Postgres::start();
    let node = join(&server.url()).await;
    let (good, bad) = (open_log(&node.journal(), "good").await, open_log(&node.journal(), "bad").await);
    // As a full disk would, for one of them.
    server.sql(
        "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF new.event LIKE '%poison%' THEN RAISE 'could not extend file' USING ERRCODE = '53100'; END IF;
            RETURN new; END $$;
        CREATE TRIGGER no BEFORE INSERT ON mainstem.events FOR EACH ROW EXECUTE FUNCTION no()",
    );
    (0..10).for_each(|_| _ = (good.emit(text_delta("fine")), bad.emit(text_delta("poison"))));
    emit_run(&good, "1", 1);
    node.journal().flush().await.unwrap();
    assert_eq!((good.failure(), good.committed()), (None, Some(13)));
    let why = bad.failure().unwrap();
    assert!(why.contains("could not extend file (53100)") && why.contains("postgres://"), "{why}");
    let worse = open_log(&node.journal(), "worse").await;
    worse.emit(text_delta("poison"));
    node.journal().flush().await.expect("what one record refuses is told by that record");
    assert!(worse.failure().is_some());
}

#[tokio::test]
async fn a_backup_is_restored_while_sessions_are_open() {
    let (server, other, folder) = (Postgres::start(), Postgres::start(), tempfile::tempdir().unwrap());
    let file = folder.path().join("backup");
    let node = join(&server.url()).await;
    let log = open_log(&node.journal(), "s").await;
    emit_run(&log, "1", 8);
    let job = Job::new("job-1".parse().unwrap(), serde_json::json!({}), Timestamp::default());
    assert!(node.journal().jobs().unwrap().add(job).await.unwrap());
    node.journal().flush().await.unwrap();
    server.dump(&file, &["--format=custom", "--schema=mainstem"]);
    emit_run(&log, "later", 8);
    node.journal().flush().await.unwrap();
    other.restore(&file, &["--no-owner"]);
    // The node that had the session is alive by its lease; after that another has what was saved.
    let restored = join(&other.url()).await;
    let log = take(&restored, "s").await;
    assert_eq!(log.last_seq(), 10);
    emit_run(&log, "2", 8);
    restored.journal().flush().await.unwrap();
    assert_eq!(texts(&restored, "s").await.len(), 16);
    let jobs = restored.journal().jobs().unwrap();
    assert_eq!(jobs.take(Take { most: 9, ..Take::default() }).await.unwrap().len(), 1);
}

/// The process that is killed or paused: appends numbers, and prints those that are committed.
#[tokio::test]
async fn appends_until_it_is_killed() {
    let Ok(url) = std::env::var("MAINSTEM_POSTGRES_VICTIM") else { return };
    let node = join(&url).await;
    let log = take(&node, "s").await;
    let mut reader = log.committed_from(log.last_seq() + 1);
    loop {
        log.emit(text_delta((log.last_seq() + 1).to_string()));
        let Some(event) = reader.next().await else {
            return println!("failed {:?}", log.failure());
        };
        if let EventKind::TextBlockDelta { .. } = event.kind {
            println!("shown {}", event.seq);
        }
    }
}

struct Victim(std::process::Child);

impl Victim {
    fn start(url: &str) -> Self {
        let victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "faults::appends_until_it_is_killed", "--nocapture"])
            .env("MAINSTEM_POSTGRES_VICTIM", url)
            .stdout(Stdio::piped())
            .spawn();
        Self(victim.unwrap())
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.0.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits for its end. Returns its lines that begin with a word.
    fn lines(self, word: &str) -> Vec<String> {
        let output = self.0.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().filter_map(|line| Some(line.strip_prefix(word)?.trim().to_owned())).collect()
    }
}

#[tokio::test]
async fn a_killed_node_is_followed_by_another_and_what_it_has_shown_is_there() {
    let server = Postgres::start();
    let node = join(&server.url()).await;
    let mut last = 0;
    for round in 0..3 {
        let victim = Victim::start(&server.url());
        sleep(Duration::from_millis(700 + 100 * round)).await;
        victim.signal("KILL");
        let begun = Instant::now();
        let log = take(&node, "s").await;
        assert!(begun.elapsed() < LEASE * 3, "{:?}", begun.elapsed());
        let shown: Vec<u64> = victim.lines("shown").iter().filter_map(|seq| seq.parse().ok()).collect();
        assert!(shown.len() > 3, "it has worked: {shown:?}");
        assert!(log.last_seq() >= *shown.last().unwrap() && shown[0] > last);
        last = log.emit(text_delta("mine"));
        node.journal().flush().await.unwrap();
        let texts = texts(&node, "s").await;
        assert!(shown.iter().all(|seq| texts[*seq as usize - 1] == seq.to_string()));
    }
}

#[tokio::test]
async fn a_node_that_is_paused_past_its_lease_writes_nothing_when_it_is_back() {
    let server = Postgres::start();
    let node = join(&server.url()).await;
    let victim = Victim::start(&server.url());
    sleep(Duration::from_secs(1)).await;
    victim.signal("STOP");
    let log = take(&node, "s").await;
    let taken_at = log.last_seq();
    (0..5).for_each(|_| _ = log.emit(text_delta("mine")));
    node.journal().flush().await.unwrap();
    victim.signal("CONT");
    let failed = victim.lines("failed");
    assert!(failed.iter().any(|why| why.contains("lease") || why.contains("taken it over")), "{failed:?}");
    let texts = texts(&node, "s").await;
    assert_eq!(texts[taken_at as usize..], ["mine"; 5]);
    assert!(texts[..taken_at as usize].iter().enumerate().all(|(n, text)| *text == (n + 1).to_string()));
}

#[tokio::test]
async fn the_jobs_of_a_node_that_has_ended_are_taken_by_another() {
    let server = Postgres::start();
    let proxy = Proxy::before([server.port()]).await;
    let (cut, there) = (join(&server.url_at(proxy.port())).await, join(&server.url()).await);
    let (jobs, others) = (cut.journal().jobs().unwrap(), there.journal().jobs().unwrap());
    let job = Job::new("job-1".parse().unwrap(), serde_json::json!({}), Timestamp::default());
    assert!(jobs.add(job).await.unwrap());
    let take = Take { most: 1, ..Take::default() };
    assert_eq!(jobs.take(take.clone()).await.unwrap()[0].attempt, 1);
    assert_eq!(others.take(take.clone()).await.unwrap(), []);
    proxy.cut();
    let begun = Instant::now();
    let taken = loop {
        match others.take(take.clone()).await.unwrap().pop() {
            Some(job) => break job,
            None => sleep(Duration::from_millis(50)).await,
        }
    };
    assert!(begun.elapsed() < LEASE * 3, "{:?}", begun.elapsed());
    assert_eq!((taken.attempt, taken.key()), (2, "job:job-1:1".to_owned()));
    assert!(jobs.take(take).await.is_err(), "a node without a lease takes none");
}
