//! Commands: how they end, what they may do, and that nothing they start outlives them.

use std::time::Duration;

use mainstem_testing::context;
use mainstem_tool::ToolState;
use serde_json::json;

use super::Running;
use crate::{
    Workspaces,
    rig::{Rig, SECRET, block_on, call, progress, runtime},
    shell::{Confinement, Output, ShellOptions, start},
};

#[test]
fn the_answer_has_the_output_in_order_and_the_status() {
    let rig = Rig::new();
    #[track_caller]
    fn check(rig: &Rig, command: &str, state: ToolState, expected: &str) {
        let (is, text) = block_on(rig.call("shell", json!({ "command": command })));
        assert_eq!(
            (is, &*text.replace("[not confined by the kernel]\n", "")),
            (state, expected),
            "{command}"
        );
    }
    use ToolState::{Error, Success};
    check(&rig, "echo out; echo err >&2; echo out", Success, "out\nerr\nout\n[exit status 0]");
    check(&rig, "true", Success, "[exit status 0]");
    check(&rig, "printf x; exit 3", Error, "x\n[exit status 3]");
    check(&rig, "kill -9 $$", Error, "[killed by signal 9]");
    check(&rig, "nonsense-command 2>/dev/null", Error, "[exit status 127]");
    check(&rig, "cat", Success, "[exit status 0]");
    check(&rig, "exec >&- 2>&-; true", Success, "[exit status 0]");
    check(&rig, "echo $TERM; test \"$HOME\" = \"$PWD\" && echo home", Success, "dumb\nhome\n[exit status 0]");
    check(&rig, "echo made > made.txt; cat made.txt", Success, "made\n[exit status 0]");
    assert_eq!(rig.read("made.txt"), b"made\n");
    let error = rig.err("shell", json!({ "command": "a\0b" }));
    assert!(error.starts_with("the command can't be started: "), "{error}");
    let clamped = rig.ok("shell", json!({ "command": "true", "timeout_seconds": 9999 }));
    assert!(clamped.contains("[timeout_seconds is at most 600]\n"), "{clamped}");
}

#[test]
fn no_secret_of_the_environment_is_passed() {
    let rig = Rig::new();
    let known = rig.ok("shell", json!({ "command": "env | cut -d= -f1" }));
    let allowed = ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "HOME", "TERM", "PWD", "SHLVL", "_", "OLDPWD"];
    let names: Vec<_> = known.lines().filter(|line| !line.starts_with('[')).collect();
    assert!(names.iter().all(|name| allowed.contains(name)), "{names:?}");
}

#[test]
fn output_comes_live() {
    let rig = Rig::new();
    assert!(std::process::Command::new("mkfifo").arg(rig.at("go")).status().unwrap().success());
    block_on(async {
        // The command waits for somebody who has seen its first line.
        let mut running = Box::pin(rig.call("shell", json!({ "command": "echo first; cat go; echo last" })));
        let seen = until(|| progress(&rig.cx, 0) == "first\n");
        tokio::select! {
            _ = &mut running => panic!("it did not wait"),
            () = seen => {}
        }
        std::fs::write(rig.at("go"), "went\n").unwrap();
        let (_, text) = running.await;
        assert!(text.starts_with("first\nwent\nlast\n["), "{text}");
    });
}

#[test]
fn much_output_is_bounded() {
    let rig = Rig::new();
    let text = rig.ok("shell", json!({ "command": "seq 1 1000000" }));
    assert!(text.starts_with("1\n2\n3\n") && text.len() < 48 << 10, "{}", text.len());
    assert!(text.contains(" bytes left out]\n") && text.contains("\n999999\n1000000\n["), "{text}");
}

#[test]
fn what_was_printed_before_the_end_is_told() {
    let rig = Rig::new();
    block_on(async {
        let command = "echo begun; touch printed; sleep 1000";
        let (group, pipe, _) = start(command, rig.workspace.root(), &ShellOptions::default()).await.unwrap();
        until(|| rig.at("printed").exists()).await;
        assert_eq!(Running { group, pipe, output: Output::default() }.finish(), "begun\n");
    });
}

/// Two processes, one of which ignores what it can, and their numbers in `pids`.
const TWO: &str = "trap '' TERM INT HUP; sleep 1000 & echo $$ $! > pids.new; mv pids.new pids; sleep 1000";

async fn pids(rig: &Rig) -> Vec<String> {
    until(|| rig.at("pids").exists()).await;
    let pids = String::from_utf8(rig.read("pids")).unwrap();
    pids.split_whitespace().map(str::to_owned).collect()
}

/// Whether a process is there and no zombie.
fn lives(pid: &String) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    status.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[test]
fn a_drop_kills_the_group() {
    let rig = Rig::new();
    block_on(async {
        let mut running = Box::pin(rig.call("shell", json!({ "command": TWO })));
        let pids = tokio::select! {
            (_, text) = &mut running => panic!("it ended: {text}"),
            pids = pids(&rig) => pids,
        };
        assert!(pids.len() == 2 && pids.iter().all(lives), "{pids:?}");
        drop(running);
        until(|| !pids.iter().any(lives)).await;
    });
}

#[test]
fn a_cancel_kills_the_group_and_keeps_the_output() {
    let rig = Rig::new();
    block_on(async {
        let command = format!("echo begun; {TWO}");
        let running = rig.call("shell", json!({ "command": command }));
        let cancel = async {
            let pids = pids(&rig).await;
            rig.cx.cancellation().cancel();
            pids
        };
        let ((state, text), pids) = tokio::join!(running, cancel);
        assert_eq!(state, ToolState::Interrupted);
        assert!(
            text.starts_with("begun\n") && text.ends_with("[interrupted; all its processes were ended]"),
            "{text}"
        );
        until(|| !pids.iter().any(lives)).await;
    });
}

#[test]
fn a_timeout_kills_the_group_and_keeps_the_output() {
    let rig = Rig::new();
    runtime().block_on(async {
        let command = format!("echo begun; {TWO}");
        let running = rig.call("shell", json!({ "command": command, "timeout_seconds": 500 }));
        let wait = async {
            let pids = pids(&rig).await;
            // It is not only there, but waited for.
            until(|| progress(&rig.cx, 0).contains("begun")).await;
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(499)).await;
            assert!(pids.iter().all(lives), "not yet");
            tokio::time::advance(Duration::from_secs(2)).await;
            tokio::time::resume();
            pids
        };
        let ((state, text), pids) = tokio::join!(running, wait);
        assert_eq!(state, ToolState::Error);
        assert!(
            text.starts_with("begun\n")
                && text.ends_with("[timed out after 500 s; all its processes were ended]"),
            "{text}"
        );
        until(|| !pids.iter().any(lives)).await;
    });
}

#[test]
fn what_is_left_in_the_background_ends_with_the_command() {
    let rig = Rig::new();
    for redirect in ["", "> /dev/null 2>&1"] {
        let command = format!("sleep 1000 {redirect} & echo $!");
        let text = rig.ok("shell", json!({ "command": command }));
        let (pid, end) = text.split_once('\n').unwrap();
        assert_eq!(
            end.replace("[not confined by the kernel]\n", ""),
            "[exit status 0]",
            "its output is not awaited"
        );
        let pid = pid.to_owned();
        block_on(until(|| !lives(&pid)));
    }
}

#[test]
fn a_process_that_leaves_the_group_does_not_hold_the_answer() {
    let rig = Rig::new();
    let text = rig.ok("shell", json!({ "command": "setsid sh -c 'echo $$; exec sleep 1000' & sleep 0.05" }));
    let pid = text.lines().next().unwrap().to_owned();
    let _ = std::process::Command::new("kill").args(["-9", &pid]).status();
    assert!(
        text.ends_with("[a process that left the command's group may still run; exit status 0]"),
        "{text}"
    );
}

#[test]
fn the_kernel_holds_a_command_in_its_workspace() {
    let rig = Rig::new();
    let home = tempfile::TempDir::with_prefix_in("mainstem-ws-", "/var/tmp").unwrap();
    std::fs::write(home.path().join("secret.txt"), SECRET).unwrap();
    let workspace = crate::Workspace::create(home.path().join("ws")).unwrap();
    let at = home.path().display().to_string();
    let tool = workspace.shell();
    let run = |command: String| block_on(call(&tool, &rig.cx, json!({ "command": command }))).1;
    if run("true".to_owned()).contains("not confined") {
        eprintln!("not applicable: this kernel has no Landlock");
        return;
    }
    #[track_caller]
    fn refused(text: &str) {
        assert!(!text.contains(SECRET) && text.contains("ermission denied"), "{text}");
    }
    refused(&run("cat ../secret.txt".to_owned()));
    refused(&run(format!("cat {at}/secret.txt")));
    refused(&run(format!("ls {at}")));
    refused(&run("echo x > ../new.txt".to_owned()));
    refused(&run(format!("echo x > {at}/secret.txt")));
    refused(&run("rm ../secret.txt".to_owned()));
    refused(&run("mv ../secret.txt .".to_owned()));
    refused(&run("ln -s ../secret.txt link && cat link".to_owned()));
    refused(&run("echo x > /etc/mainstem-test".to_owned()));
    refused(&run("mkdir /usr/mainstem-test".to_owned()));
    refused(&run("cat /proc/$PPID/environ".to_owned()));
    let signal = run("kill -0 $PPID".to_owned()).to_lowercase();
    assert!(signal.contains("not permitted"), "{signal}");
    assert_eq!(std::fs::read_to_string(home.path().join("secret.txt")).unwrap(), SECRET);
    assert!(!home.path().join("new.txt").exists());
    let all = "ls /usr > /dev/null && echo x > f && mkdir d && mv f d/g && cat d/g && rm -r d && t=$(mktemp) && echo y > $t && cat $t && rm $t";
    let all = run(all.to_owned());
    assert_eq!(all, "x\ny\n[exit status 0]", "the work itself is free");
    let options = ShellOptions::default().with_readable(home.path()).with_writable(home.path().join("more"));
    std::fs::create_dir(home.path().join("more")).unwrap();
    let tool = Workspaces::from(workspace).shell_with(options);
    let text = block_on(call(
        &tool,
        &rig.cx,
        json!({ "command": "cat ../secret.txt; echo x > ../more/f; cat ../more/f; rm ../secret.txt" }),
    ))
    .1;
    assert!(text.starts_with(&format!("{SECRET}x\n")) && text.contains("ermission denied"), "{text}");
}

#[test]
fn this_process_stays_free() {
    let rig = Rig::new();
    let confinement = block_on(async {
        let (mut group, _pipe, confinement) =
            start("true", rig.workspace.root(), &ShellOptions::default()).await.unwrap();
        group.wait().await.unwrap();
        confinement
    });
    assert!([Confinement::Full, Confinement::Partial, Confinement::None].contains(&confinement));
    assert_eq!(std::fs::read_to_string(rig.outside().join("secret.txt")).unwrap(), SECRET);
    std::fs::read_dir(env!("CARGO_MANIFEST_DIR")).unwrap();
}

#[test]
fn a_call_that_is_cancelled_before_it_starts_runs_nothing() {
    let rig = Rig::new();
    let cx = context("s").build();
    cx.cancellation().cancel();
    let (state, text) = block_on(call(&rig.tool("shell"), &cx, json!({ "command": "touch ran" })));
    assert_eq!((state, &*text), (ToolState::Error, "stopped before it was done: the run was cancelled"));
    assert!(!rig.at("ran").exists());
}
