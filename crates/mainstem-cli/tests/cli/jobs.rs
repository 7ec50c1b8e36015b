//! `mainstem jobs` and `worker`: runs at a time, or again and again.
#![cfg(unix)]

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use mainstem_testing::Postgres;

use crate::support::{Done, mainstem};

const TOKEN: &str = "a-token-for-the-tests";

fn on(command: &str, journal: &str, more: &[&str]) -> Done {
    mainstem(command).args(&["--journal", journal]).args(more).run()
}

/// Waits until a job is over, and returns what is shown of it.
fn over(journal: &str, id: &str) -> String {
    let begun = Instant::now();
    loop {
        let shown = on("jobs show", journal, &[id]).stdout;
        if shown.contains("status: ended") || shown.contains("status: cancelled") {
            return shown;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{shown}");
        sleep(Duration::from_millis(100));
    }
}

fn a_worker_runs_what_is_due(journal: &str) {
    let due = on("jobs add", journal, &["Compare Paris and Rome", "--session", "cities"]);
    assert!(due.code == Some(0) && due.stderr.contains("`mainstem worker`"), "{due:?}");
    let due = due.stdout.trim().to_owned();
    let later =
        on("jobs add", journal, &["Later", "--cron", "0 9 * * MON-FRI Europe/Berlin", "--id", "daily"]);
    assert_eq!(later.stdout, "daily\n");
    let again = on("jobs add", journal, &["Later", "--id", "daily"]);
    assert!(again.code == Some(1) && again.stderr.contains("there is a job \"daily\" already"), "{again:?}");
    let list = on("jobs list", journal, &[]).stdout;
    assert!(
        list.contains(&due) && list.contains("Compare Paris and Rome") && list.contains("daily"),
        "{list}"
    );
    let worker = mainstem("worker -m demo --demo-pace 0.01 --log off").args(&["--journal", journal]).start();
    let shown = over(journal, &due);
    assert!(shown.contains("last session: cities") && shown.contains(", success"), "{shown}");
    worker.signal("TERM");
    let done = worker.done();
    assert!(
        done.code == Some(0) && done.stderr.contains("running 16 jobs at once with main and demo"),
        "{done:?}"
    );
    let cancelled = on("jobs cancel", journal, &["daily"]);
    assert!(cancelled.stdout.contains("status: cancelled"), "{cancelled:?}");
    let again = on("jobs cancel", journal, &["daily"]);
    assert!(again.code == Some(1) && again.stderr.contains("the job is over already"), "{again:?}");
    assert_eq!(on("jobs list", journal, &[]).stderr, "no jobs\n");
    let sessions = on("sessions list", journal, &[]).stdout;
    assert_eq!(sessions.lines().filter(|line| line.starts_with("cities")).count(), 1, "{sessions}");
}

#[test]
fn a_worker_runs_the_jobs_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    a_worker_runs_what_is_due(folder.path().join("j.db").to_str().unwrap());
}

#[test]
fn a_worker_runs_the_jobs_of_a_database() {
    let database = Postgres::start();
    assert_eq!(on("migrate", &database.url(), &[]).code, Some(0));
    a_worker_runs_what_is_due(&database.url());
}

#[test]
fn a_time_that_is_none_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("j.db");
    #[track_caller]
    fn check(journal: &str, more: &[&str], code: i32, expected: &str) {
        let done = on("jobs add x", journal, more);
        assert!(done.code == Some(code) && done.stderr.contains(expected), "{more:?}: {done:?}");
        assert_eq!(done.stdout, "");
    }
    let journal = journal.to_str().unwrap();
    check(journal, &["--at", "tomorrow"], 2, "such as 2026-12-24T18:00:00Z");
    check(journal, &["--at", "2026-12-24"], 2, "such as 2026-12-24T18:00:00Z");
    check(journal, &["--in", "soon"], 2, "soon");
    check(journal, &["--in", "2h", "--cron", "* * * * *"], 2, "cannot be used with");
    check(journal, &["--cron", "* * * *"], 2, "is not a cron expression");
    check(journal, &["--cron", "0 9 * * * Mars/Olympus"], 2, "Mars/Olympus");
    check(journal, &["--cron", "0 0 30 2 *"], 1, "that time never comes");
    check(journal, &["--priority", "99999"], 2, "99999");
    check(journal, &["--session", "a b"], 2, "session id");
    assert_eq!(on("jobs list", journal, &["--all"]).stderr, "no jobs\n");
    // An offset from UTC is one of a time.
    let offset = on("jobs add x", journal, &["--at", "2100-01-01T00:30:00+01:00"]);
    assert!(offset.stderr.contains("due at 2099-12-31T23:30:00.000000Z"), "{offset:?}");
    let unknown = on("jobs show", journal, &["none"]);
    assert!(unknown.code == Some(1) && unknown.stderr.contains("`mainstem jobs list --all`"), "{unknown:?}");
}

#[test]
fn jobs_of_a_server_are_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("j.db");
    let serve = |more: &[&str]| {
        let line = "serve -m demo --demo-pace 0.01 --bind 127.0.0.1:0 --log off --token-file tokens";
        let mut server = mainstem(line).file("tokens", TOKEN).args(more).start();
        (server.line().trim().to_owned(), server)
    };
    let (address, server) = serve(&["--journal", journal.to_str().unwrap()]);
    let at = |command: &str, more: &[&str]| {
        mainstem(command).args(&["--server", &address]).env("MAINSTEM_TOKEN", TOKEN).args(more).run()
    };
    let added = at("jobs add", &["Compare Paris and Rome"]);
    assert!(added.code == Some(0) && added.stderr.is_empty(), "{added:?}");
    let begun = Instant::now();
    while !at("jobs show", &[added.stdout.trim()]).stdout.contains("status: ended") {
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
    let over = at("jobs cancel", &[added.stdout.trim()]);
    assert!(over.code == Some(1) && over.stderr.contains("the job is over already"), "{over:?}");
    server.signal("TERM");
    assert_eq!(server.done().code, Some(0));
    let (address, _without) = serve(&[]);
    let none = mainstem("jobs list").args(&["--server", &address]).env("MAINSTEM_TOKEN", TOKEN).run();
    assert!(none.code == Some(1) && none.stderr.contains("`--journal` sets it"), "{none:?}");
}
