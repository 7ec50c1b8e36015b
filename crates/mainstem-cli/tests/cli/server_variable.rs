//! `MAINSTEM_SERVER`, which counts as `--server` for every command that has this option.

use crate::support::{Done, demo, mainstem};

/// Where no server listens.
const NOWHERE: &str = "http://127.0.0.1:9";

const TIP: &str = "MAINSTEM_SERVER is set, and counts as --server";

fn with_variable(line: &str) -> Done {
    mainstem(line).env("MAINSTEM_SERVER", NOWHERE).run()
}

/// What was printed, without the tip.
fn said(done: &Done) -> (Option<i32>, &str, String) {
    let lines = done.stderr.lines().filter(|line| !line.contains(TIP) && !line.is_empty());
    (done.code, &done.stdout, lines.collect::<Vec<_>>().join("\n"))
}

#[test]
fn the_variable_is_the_option() {
    let check = |line: &str, expected: &str, has_tip: bool| {
        let by_option = mainstem(&format!("{line} --server {NOWHERE}")).run();
        let by_variable = with_variable(line);
        assert_eq!(said(&by_option), said(&by_variable), "{line}");
        assert!(by_variable.stderr.contains(expected), "{line}: {by_variable:?}");
        assert_eq!(by_variable.stderr.contains(TIP), has_tip, "{line}: {by_variable:?}");
        assert!(!by_option.stderr.contains(TIP), "{line}: {by_option:?}");
    };
    for line in [
        "run -q Hi",
        "run -q --session s Hi",
        "run -q --continue Hi",
        "chat --continue",
        "attach s",
        "replay s",
        "tasks list",
        "tasks show t",
        "tasks logs t",
        "tasks wait t",
        "tasks cancel t",
        "tasks rm t",
        "sessions list",
        "sessions show s",
        "sessions export s",
        "sessions rm s",
    ] {
        check(line, "127.0.0.1:9", false);
    }
    for line in [
        "run -w . Hi",
        "run --foreign Hi",
        "run --session s --journal j.db Hi",
        "chat --shell",
        "attach s --journal j.db",
        "replay s --journal j.db",
        "tasks list --journal j.db",
        "sessions list --journal j.db",
    ] {
        check(line, "cannot be used with", true);
    }
    for line in ["tasks list -w .", "sessions rm s -w ."] {
        check(line, "--workspace is a directory of this machine; it cannot be used with --server", false);
    }
}

#[test]
fn other_commands_are_about_this_machine() {
    for line in [
        "agents list",
        "agents validate",
        "agents keys",
        "config show",
        "models",
        "tools -m demo",
        "trust list",
        "version",
    ] {
        let (with, without) = (with_variable(line), mainstem(line).run());
        assert_eq!(said(&with), said(&without), "{line}");
        assert_eq!(with.code, Some(0), "{line}: {with:?}");
    }
    let row =
        format!("MAINSTEM_SERVER: run, chat, attach, watch, replay, sessions, tasks and jobs use {NOWHERE}");
    assert!(with_variable("doctor").stdout.contains(&row));
    assert!(!mainstem("doctor").run().stdout.contains("MAINSTEM_SERVER"));
}

#[test]
fn an_empty_variable_and_a_file_are_of_this_machine() {
    let empty = mainstem("sessions list").env("MAINSTEM_SERVER", " ").run();
    assert_eq!(said(&empty), said(&mainstem("sessions list").run()));

    let dir = tempfile::tempdir().unwrap();
    let record = demo("-q --record demo.ndjson").within(dir.path()).run();
    assert_eq!(record.code, Some(0), "{record:?}");
    let line = "replay --speed max --progress quiet demo.ndjson";
    let replayed = mainstem(line).within(dir.path()).env("MAINSTEM_SERVER", NOWHERE).run();
    assert_eq!((replayed.code, &replayed.stdout), (Some(0), &record.stdout), "{replayed:?}");
}
