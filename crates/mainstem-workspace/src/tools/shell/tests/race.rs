//! A directory that is exchanged for a link to another one, again and again, while commands start
//! in it.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use futures_util::future::join_all;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;

use crate::{
    Workspace,
    rig::{Rig, block_on, call, not_applicable, shell, shell_options},
};

/// Starts commands, each while the exchange goes on.
fn starts() -> usize {
    if std::env::var_os("RUN_SLOW_TESTS").is_some() { 1000 } else { 60 }
}

/// Exchanges two names until the work is done; returns how often.
fn exchange_during(one: &Path, other: &Path, work: impl FnOnce()) -> usize {
    let (is_over, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
                thread::yield_now();
            }
        });
        work();
        is_over.store(true, Ordering::Relaxed);
    });
    swaps.into_inner()
}

#[test]
fn a_directory_that_is_swapped_for_a_link_lets_nothing_out() {
    let rig = Rig::new();
    // Not in /tmp, where every command may write.
    let home = tempfile::TempDir::with_prefix_in("mainstem-race-", "/var/tmp").unwrap();
    let outside = home.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret.txt"), crate::rig::SECRET).unwrap();
    let parent = Workspace::create(home.path().join("ws")).unwrap();
    let (dir, link) = (home.path().join("ws/child"), home.path().join("ws/link"));
    fs::create_dir(&dir).unwrap();
    symlink(&outside, &link).unwrap();
    let (mut started, mut told) = (0, 0);
    let swaps = exchange_during(&dir, &link, || {
        while started < starts() {
            // While the link has the name, the workspace itself refuses.
            let tools: Vec<_> = (0..4)
                .filter_map(|_| parent.create_inside("child").ok())
                .map(|child| shell(&child, shell_options()))
                .collect();
            let calls = tools.iter().enumerate().map(|(number, tool)| {
                let command = format!("echo out > escaped-{started}-{number}; cat secret.txt");
                call(tool, &rig.cx, json!({ "command": command }))
            });
            let answers = block_on(join_all(calls));
            started += answers.len();
            if answers.iter().any(|(_, text)| text.contains("not confined")) {
                // Only the working directory is tested.
                not_applicable("this kernel has no Landlock");
            }
            told += answers.iter().filter(|(_, text)| text.contains(crate::rig::SECRET)).count();
        }
    });
    let escaped = fs::read_dir(&outside).unwrap().count() - 1;
    assert_eq!((escaped, told), (0, 0), "of {started} commands, during {swaps} swaps: written, read");
    assert!(swaps > started, "{swaps} swaps");
}
