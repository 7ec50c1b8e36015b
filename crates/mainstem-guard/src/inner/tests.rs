//! A command whose guard ends first.

use std::{
    io::{Write, pipe},
    process::Stdio,
};

use crate::{Job, Report, program::INNER, rig::program};

#[test]
fn a_command_does_not_start_after_its_guard_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    let job = Job::new(["/bin/sh", "-c", ": > made"].map(str::to_owned).into()).with_namespaces(false);
    let (stdin, mut guard) = pipe().unwrap();
    guard.write_all(job.to_line().unwrap().as_bytes()).unwrap();
    // The kernel does this when a guard ends: here, before the process reads its job.
    drop(guard);
    let mut inner = program().as_role(INNER);
    let inner = inner.current_dir(dir.path()).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::null());
    let output = inner.spawn().unwrap().wait_with_output().unwrap();
    assert!(!dir.path().join("made").exists());
    let reports: Vec<_> = output.stdout.split(|byte| *byte == b'\n').filter_map(Report::parse).collect();
    assert_eq!(reports, [Report::Failed("the guard has ended".to_owned())]);
}
