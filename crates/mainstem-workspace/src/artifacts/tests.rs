//! The files of artifacts, each of its own.

use mainstem_tool::Artifacts;

use crate::{
    Workspaces,
    rig::{Rig, block_on},
};

#[test]
fn each_is_a_file_of_its_own_that_read_file_reads() {
    let rig = Rig::new();
    let artifacts = Workspaces::from(rig.workspace.clone());
    let store = |text: &str| block_on(artifacts.store(&rig.cx, text)).unwrap();
    assert_eq!(store("one\ntwo"), "artifacts/s-1/call-1.txt");
    assert_eq!(store("three"), "artifacts/s-1/call-1.1.txt");
    assert_eq!(rig.read("artifacts/s-1/call-1.txt"), b"one\ntwo");
    let read = rig.ok("read_file", serde_json::json!({ "path": "artifacts/s-1/call-1.txt", "offset": 2 }));
    assert!(read.starts_with("2\ttwo"), "{read}");
}

#[cfg(unix)]
#[test]
fn none_leaves_the_workspace() {
    let rig = Rig::new();
    std::os::unix::fs::symlink(rig.outside(), rig.at("artifacts")).unwrap();
    let stored = block_on(Workspaces::from(rig.workspace.clone()).store(&rig.cx, "text"));
    let why = stored.unwrap_err().to_string();
    assert!(why.contains("leads out"), "{why}");
    assert_eq!(std::fs::read_dir(rig.outside()).unwrap().count(), 1);
}

#[test]
fn a_cancelled_run_stores_nothing() {
    let rig = Rig::new();
    rig.cx.cancellation().cancel();
    let stored = block_on(Workspaces::from(rig.workspace.clone()).store(&rig.cx, "text"));
    assert!(stored.is_err() && !rig.at("artifacts").exists());
}
