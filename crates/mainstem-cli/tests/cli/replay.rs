//! What was recorded is shown again, as it was and as fast as one likes.

use std::time::{Duration, Instant};

use crate::support::{demo, mainstem};

/// The demo, recorded; what it said on stdout and stderr.
fn recorded() -> (String, String, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let done = demo("--progress plain --record").arg(file.path()).run();
    assert_eq!(done.code, Some(0), "{done:?}");
    (std::fs::read_to_string(file.path()).unwrap(), done.stdout, done.stderr)
}

#[test]
fn a_replay_looks_as_the_run_did() {
    let (file, stdout, stderr) = recorded();
    let shown = mainstem("replay r.jsonl --speed max --progress plain").file("r.jsonl", &file).run();
    assert_eq!((shown.code, shown.stdout), (Some(0), stdout));
    assert_eq!(shown.stderr, stderr);
}

#[test]
fn it_takes_its_time() {
    let (file, ..) = recorded();
    // Two events of it, 800 ms apart, and one a night later.
    let at = |line: &str, at: &str| {
        let mut event: serde_json::Value = serde_json::from_str(line).unwrap();
        event["createdAt"] = at.into();
        format!("{event}\n")
    };
    let times = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.800Z", "2026-01-02T00:00:00Z"];
    let file: String = file.lines().zip(times).map(|(line, time)| at(line, time)).collect();
    let took = |speed: &str| {
        let began = Instant::now();
        let replay = mainstem("replay r.jsonl --progress quiet --speed").arg(speed);
        assert_eq!(replay.file("r.jsonl", &file).run().code, Some(0));
        began.elapsed()
    };
    let (slow, fast, at_once) = (took("8"), took("1000000"), took("max"));
    assert!(slow >= Duration::from_millis(3100), "a tenth of a second, and the longest pause: {slow:?}");
    assert!(fast >= Duration::from_millis(80) && fast < slow, "{fast:?}");
    assert!(at_once < slow, "{at_once:?}");
}

#[test]
fn what_is_no_record_is_said_with_its_place() {
    let (file, ..) = recorded();
    let check = |text: &str, place: &str| {
        let said = mainstem("replay r.jsonl --speed max --progress quiet").file("r.jsonl", text).run();
        assert!(said.code == Some(1) && said.stderr.starts_with(place), "{said:?}");
        assert_eq!(said.stderr.lines().count(), 1, "{said:?}");
    };
    let first = file.lines().next().unwrap();
    check("hello\n", "error: r.jsonl:1:1: not an event: expected value\n");
    check(&format!("{first}\n\n{{\"seq\": 2}}\n"), "error: r.jsonl:3:10: not an event: ");
    check(&format!("{first}\n{}", &first[..first.len() / 2]), "error: r.jsonl:2:");
    let none = mainstem("replay nothing").run();
    assert_eq!(none.code, Some(2));
    assert!(none.stderr.starts_with("error: there is no file \"nothing\", and no session"), "{none:?}");
    for speed in ["0", "-1", "NaN", "fast"] {
        let said = mainstem("replay x").arg(format!("--speed={speed}")).run();
        assert!(said.code == Some(2) && said.stderr.contains("above 0"), "{said:?}");
    }
}
