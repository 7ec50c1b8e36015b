//! What a newcomer met: commands that failed without a word, or said the wrong one.

use std::fs;

use crate::{
    files::{calls, cli, run},
    support::{demo, mainstem},
};

#[test]
fn a_server_starts_at_a_terminal_with_colours() {
    let mut server = mainstem("serve -m demo --bind 127.0.0.1:0 --color always").start();
    assert!(server.line().starts_with("http://"));
    server.signal("TERM");
    let done = server.done();
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
fn a_journal_is_one_complete_file_after_a_command() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, copy) = (folder.path().join("j.db"), folder.path().join("copy.db"));
    let jobs = |command: &str, at: &std::path::Path| {
        let done = mainstem(command).arg("--journal").arg(at).run();
        assert_eq!(done.code, Some(0), "{done:?}");
        done.stdout
    };
    let id = jobs("jobs add Look --in 5h", &journal);
    fs::copy(&journal, &copy).unwrap();
    assert!(jobs("jobs list", &copy).contains(id.trim()));
    jobs(&format!("jobs cancel {}", id.trim()), &journal);
    fs::copy(&journal, &copy).unwrap();
    assert!(!jobs("jobs list", &copy).contains(id.trim()));

    let model = calls(Vec::new());
    run(cli(&model, "--session s --journal").arg(&journal));
    assert_eq!(mainstem("sessions rm s s --journal").arg(&journal).run().code, Some(0));
    fs::copy(&journal, &copy).unwrap();
    assert_eq!(mainstem("sessions list --journal").arg(&copy).run().stdout, "");
}

#[test]
fn what_cannot_be_done_is_said() {
    let rows = [
        ("tasks list --journal j.db", "tasks are in the workspace, and not in a journal that is a file", 3),
        ("sessions list --server 127.0.0.1:9", "an address begins with http:// or https://", 2),
        (
            "serve -m demo --bind localhost:7878",
            "expected an IP address and a port, such as 127.0.0.1:7878",
            2,
        ),
        ("replay empty.ndjson", "empty.ndjson has no events", 2),
        ("sessions list --journal none.db", "there is no journal none.db", 3),
        ("sessions prune --keep 1d --journal none.db", "there is no journal none.db", 3),
        ("sessions rm s --journal none.db", "there is no journal none.db", 3),
        ("tasks list -w nowhere", "workspace \"nowhere\" is not a directory", 3),
        ("jobs list --journal none.db", "there is no journal none.db", 3),
        ("attach s --journal none.db", "there is no journal none.db", 3),
        ("attach none --journal new.db", "there is no journal new.db", 3),
        ("replay none", "there is no file \"none\", and no session of that name", 1),
        ("attach s --server http://127.0.0.1:9", "127.0.0.1:9", 1),
        ("attach s --journal damaged.db", "the journal damaged.db: ", 3),
        ("replay s --journal damaged.db", "the journal damaged.db: ", 3),
        ("sessions list --journal damaged.db", "the journal damaged.db: ", 3),
        ("worker -m demo --jobs 0", "must be at least 1", 2),
        ("jobs add Look --cron nope", "invalid value 'nope' for '--cron <EXPRESSION>'", 2),
        ("jobs add Look --at 2020-01-01T00:00:00Z", "--at 2020-01-01T00:00:00.000000Z is over, it is ", 2),
        ("run -m demo --record notes.md", "--record notes.md: this file exists and is not a record", 2),
        (
            "run -m demo Compare --under xx --progress quiet",
            "warning: --under: there was no agent at \"xx\"",
            0,
        ),
    ];
    for (command, why, code) in rows {
        let done = mainstem(command).file("empty.ndjson", "").file("damaged.db", "no database");
        let done = done.file("notes.md", "# Notes\n").run();
        assert!(done.code == Some(code) && done.stderr.contains(why), "{command}: {done:?}");
    }
    let empty = mainstem("jobs add --journal j.db").arg(" ").run();
    assert!(empty.code == Some(2) && empty.stderr.contains("the prompt is empty"), "{empty:?}");
}

#[test]
fn a_record_that_is_cut_off_is_named() {
    let recorded = demo("run --output ndjson --progress quiet Compare").run().stdout;
    let cut: String = recorded.split_inclusive('\n').take(40).collect();
    let replay = |record: &str| mainstem("replay r.ndjson --speed 100000").file("r.ndjson", record).run();
    assert!(replay(&cut).stderr.contains("the record ends before its run does"));
    assert!(!replay(&recorded).stderr.contains("ends before"));
    // Some editors write a mark before the first line.
    let marked = replay(&format!("\u{feff}{recorded}"));
    assert!(marked.code == Some(0) && !marked.stdout.is_empty(), "{marked:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    for command in ["completions bash", "version", "--help", "run --help", "--version"] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let done = mainstem(command).streams(full, std::process::Stdio::piped()).spawn().done();
        assert_eq!(done.code, Some(1), "{command}: {done:?}");
    }
}
