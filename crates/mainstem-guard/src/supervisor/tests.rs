//! A supervisor while its program runs.

use std::{
    fs,
    process::Stdio,
    thread::sleep,
    time::{Duration, Instant},
};

use super::Supervisor;
use crate::rig::program;

/// Returns how many children a process has, with those that have ended and were not waited for.
fn children(parent: u32) -> usize {
    let stats = fs::read_dir("/proc").unwrap().flatten();
    let stats = stats.filter_map(|process| fs::read_to_string(process.path().join("stat")).ok());
    let is_one = |stat: &String| {
        let parents = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1));
        parents == Some(&*parent.to_string())
    };
    stats.filter(is_one).count()
}

#[test]
fn a_supervisor_takes_in_what_its_program_leaves_behind() {
    let dir = tempfile::tempdir().unwrap();
    let ready = dir.path().join("ready");
    let script =
        format!("for i in 1 2 3 4 5 6 7 8 9 10; do (true &); done; touch {}; exec sleep 60", ready.display());
    let mut command = program().supervisor("sh", &["-c".to_owned(), script]).unwrap();
    let mut supervisor = command.env("PATH", "/usr/bin:/bin").stdout(Stdio::null()).spawn().unwrap();
    let since = Instant::now();
    while !ready.exists() {
        assert!(since.elapsed() < Duration::from_secs(20), "it does not start");
        sleep(Duration::from_millis(5));
    }
    let mut left = children(supervisor.id());
    while left > 1 && since.elapsed() < Duration::from_secs(20) {
        sleep(Duration::from_millis(5));
        left = children(supervisor.id());
    }
    Supervisor::new(supervisor.id()).unwrap().kill();
    supervisor.wait().unwrap();
    assert_eq!(left, 1, "the program alone");
}
