//! A command whose guard ends first.

use std::{io::Write, process::Stdio};

use crate::{Job, Report, program::INNER, rig::program};

#[test]
fn a_command_does_not_start_after_its_guard_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    let mut inner = program().as_role(INNER);
    let mut inner = inner.current_dir(dir.path()).stderr(Stdio::null()).spawn().unwrap();
    let job = Job::new(["/bin/sh", "-c", ": > made"].map(str::to_owned).into()).with_namespaces(false);
    let mut stdin = inner.stdin.take().unwrap();
    stdin.write_all(job.to_line().unwrap().as_bytes()).unwrap();
    // The kernel does this when a guard ends.
    drop(stdin);
    let output = inner.wait_with_output().unwrap();
    assert!(!dir.path().join("made").exists());
    let reports: Vec<_> = output.stdout.split(|byte| *byte == b'\n').filter_map(Report::parse).collect();
    assert_eq!(reports, [Report::Failed("the guard has ended".to_owned())]);
}
