//! Stopping: Ctrl-C once and twice, SIGTERM, SIGHUP, a reader that is gone.

use std::{
    io::{Read, Seek},
    process::Stdio,
    time::{Duration, Instant},
};

use mainstem_event::{EventKind, Outcome};
use mainstem_testing::laws;

use crate::{
    server::{Server, Step},
    support::{events, mainstem, program},
};

/// A connection is closed within 100 ms; a machine that is busy with other tests gets more.
const SOON: Duration = Duration::from_millis(400);

#[test]
fn the_first_signal_cancels_every_agent() {
    for (signal, code, said) in [
        (
            "INT",
            130,
            "cancelling 6 agents… press Ctrl-C again to abort\nerror: cancelled by the user (Ctrl-C)\n",
        ),
        ("TERM", 143, "cancelling 6 agents…\nerror: cancelled by SIGTERM\n"),
        ("HUP", 129, "cancelling 6 agents…\nerror: cancelled by SIGHUP\n"),
    ] {
        let cli =
            mainstem("run -m demo --demo-pace 0.5 --output ndjson --progress quiet --record all.ndjson");
        let record = cli.dir.path().join("all.ndjson");
        let mut running = cli.start();
        while !matches!(&running.event().kind, EventKind::ToolResultStart { tool_call_name, .. } if &**tool_call_name == "run_tests")
        {
        }
        let at = Instant::now();
        running.signal(signal);
        running.wait();
        assert!(at.elapsed() < Duration::from_secs(3), "{:?}", at.elapsed());
        let all = events(&std::fs::read_to_string(record).unwrap());
        laws(&all).unwrap();
        let cancelled = all
            .iter()
            .filter(|event| matches!(event.kind, EventKind::AgentEnd { outcome: Outcome::Cancelled, .. }));
        assert_eq!(cancelled.count(), 6);
        let done = running.done();
        assert_eq!((done.code, &*done.stderr), (Some(code), said));
    }
}

#[test]
fn a_signal_closes_the_connections() {
    let server = Server::start(|_| vec![Step::Text("Well, "), Step::Hang]);
    let running = mainstem("run --progress quiet Hi").env("OPENAI_BASE_URL", &server.url()).start();
    server.until_hanging(1);
    let at = Instant::now();
    running.signal("INT");
    let closed = server.closed(1)[0].duration_since(at);
    assert!(closed < SOON, "{closed:?}");
    let done = running.done();
    assert_eq!((done.code, &*done.stdout), (Some(130), ""));
}

/// A program that fills its pipe, which has no reader: the first signal is told, the second ends it
/// at once.
#[test]
fn the_second_signal_ends_at_once_even_if_nobody_reads() {
    let server = Server::start(|_| {
        (0..2_000).map(|_| Step::Text("many words, again and again and again; ")).collect()
    });
    let mut stderr = tempfile::tempfile().unwrap();
    let mut running = mainstem("run --output ndjson --grace 1h Hi")
        .env("OPENAI_BASE_URL", &server.url())
        .streams(Stdio::piped(), stderr.try_clone().unwrap())
        .spawn();
    // The pipe holds 64 KiB; the run then waits for its reader.
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(running.child.try_wait().unwrap(), None);
    running.signal("INT");
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(running.child.try_wait().unwrap(), None, "it waits for its reader as long as it may");
    let at = Instant::now();
    running.signal("INT");
    assert_eq!(running.wait().code(), Some(130));
    assert!(at.elapsed() < Duration::from_secs(1));
    let mut said = String::new();
    stderr.rewind().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    assert!(said.ends_with("aborted by a second signal, without waiting for the agents\n"), "{said}");
}

#[test]
fn a_reader_that_is_gone_ends_the_run_quietly() {
    let server = Server::start(|_| vec![Step::Text("Well, "), Step::Gate, Step::Text("then"), Step::Hang]);
    let cli = mainstem("run --output ndjson --progress quiet Hi").env("OPENAI_BASE_URL", &server.url());
    let mut running = cli.start();
    while !matches!(running.event().kind, EventKind::TextBlockDelta { .. }) {}
    running.close_stdout();
    let at = Instant::now();
    server.open_gate();
    running.wait();
    assert!(at.elapsed() < Duration::from_secs(1), "{:?}", at.elapsed());
    assert!(server.closed(1)[0].duration_since(at) < SOON);
    let done = running.done();
    assert_eq!((done.code, &*done.stderr), (Some(141), ""));
}

#[test]
fn a_reader_that_goes_after_the_signal_changes_nothing() {
    let mut running = mainstem("run -m demo --output ndjson --progress quiet").start();
    running.event();
    running.signal("INT");
    // The signal is taken in by a thread of its own.
    std::thread::sleep(Duration::from_millis(50));
    running.close_stdout();
    assert_eq!(running.wait().code(), Some(130));
}

#[test]
fn a_full_disk_is_an_error() {
    let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else { return };
    let cli = mainstem("run -m demo --demo-pace 0 --output ndjson --progress quiet");
    let done = cli.streams(full, Stdio::null()).spawn().done();
    assert_eq!(done.code, Some(1));
    let done = mainstem("run -m demo --demo-pace 0 --progress quiet --record /dev/full").run();
    let error = "error: the record can't be written to: No space left on device (os error 28)\n";
    assert_eq!((done.code, &*done.stderr, &*done.stdout), (Some(1), error, ""));
    let script =
        "ulimit -f 40; exec \"$MAINSTEM\" run -m demo --demo-pace 0 --progress quiet --record r.ndjson";
    let done = program("/bin/sh", &["-c", script]).env("MAINSTEM", env!("CARGO_BIN_EXE_mainstem")).run();
    let error = "error: the record can't be written to: File too large (os error 27)\n";
    assert_eq!((done.code, &*done.stderr), (Some(1), error));
}

#[test]
fn what_the_user_cancels_has_not_failed() {
    let mut running = mainstem("run -m demo --output ndjson --progress plain").start();
    while !matches!(running.event().kind, EventKind::ToolResultStart { .. }) {}
    running.signal("INT");
    let done = running.done();
    assert!(done.stderr.contains("■ agent_spawn cancelled, "), "{done:?}");
    assert!(!done.stderr.contains("failed") && !done.stderr.contains("agent_key"), "{done:?}");
}
