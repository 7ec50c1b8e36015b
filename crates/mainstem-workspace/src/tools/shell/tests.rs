//! Commands: how they end, what they may do, and that all their processes end with them.

use std::{
    fs::DirEntry,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use mainstem_testing::context;
use mainstem_tool::ToolState;
use serde_json::json;

mod limits;
mod protected;
mod race;

use super::{Ending, Running};
use crate::{
    rig::{Rig, SECRET, block_on, call, not_applicable, progress, runtime, shell, shell_options},
    shell::{Output, start},
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
        // The command waits for the reader of its first line.
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
        let (guarded, pipe) = start(command, &rig.workspace, &shell_options()).await.unwrap();
        until(|| rig.at("printed").exists()).await;
        let (text, ending) = Running { guarded, pipe, output: Output::default() }.finish().await;
        assert_eq!((&*text, ending), ("begun\n", Ending::default()));
    });
}

/// Two processes that ignore what they can, and a third in a session of its own, all with the mark
/// in their arguments.
fn three(mark: &str) -> String {
    format!(
        "trap '' TERM INT HUP; sleep {mark} & setsid sh -c 'setsid sleep {mark} & wait' & touch ready; sleep {mark}"
    )
}

/// Returns a number of seconds that other tests do not use.
fn mark() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("1000.{}{:03}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Returns how many processes sleep so long. By their arguments, because a command may see its
/// processes under other numbers.
fn asleep(mark: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let sleeps = |process: &DirEntry| {
        let line = std::fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
        line.starts_with("sleep\0") && line.contains(mark)
    };
    processes.filter(sleeps).count()
}

/// Waits until the command of [`three`] runs.
async fn all_asleep(rig: &Rig, mark: &str) {
    until(|| rig.at("ready").exists() && asleep(mark) == 3).await;
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[test]
fn a_drop_kills_all_processes() {
    let (rig, mark) = (Rig::new(), mark());
    block_on(async {
        let mut running = Box::pin(rig.call("shell", json!({ "command": three(&mark) })));
        tokio::select! {
            (_, text) = &mut running => panic!("it ended: {text}"),
            () = all_asleep(&rig, &mark) => {}
        }
        drop(running);
        until(|| asleep(&mark) == 0).await;
    });
}

#[test]
fn a_killed_guard_takes_its_namespace_with_it_and_is_not_called_an_end() {
    let (rig, mark) = (Rig::new(), mark());
    block_on(async {
        let (mut guarded, _pipe) = start(&three(&mark), &rig.workspace, &shell_options()).await.unwrap();
        all_asleep(&rig, &mark).await;
        guarded.guard.start_kill().unwrap();
        let failure = guarded.wait().await.unwrap().failure.unwrap();
        assert!(failure.starts_with("the guard of the command ended early (signal: 9"), "{failure}");
        if guarded.confinement.has_own_processes {
            until(|| asleep(&mark) == 0).await;
        } else {
            not_applicable("this machine gives no namespaces");
        }
    });
}

#[test]
fn a_cancel_kills_all_processes_and_keeps_the_output() {
    let (rig, mark) = (Rig::new(), mark());
    block_on(async {
        let command = format!("echo begun; {}", three(&mark));
        let running = rig.call("shell", json!({ "command": command }));
        let cancel = async {
            all_asleep(&rig, &mark).await;
            rig.cx.cancellation().cancel();
        };
        let ((state, text), ()) = tokio::join!(running, cancel);
        assert_eq!(asleep(&mark), 0, "the answer comes after the end");
        assert_eq!(state, ToolState::Interrupted);
        assert!(
            text.starts_with("begun\n") && text.ends_with("[interrupted; all its processes were killed]"),
            "{text}"
        );
    });
}

#[test]
fn a_timeout_kills_all_processes_and_keeps_the_output() {
    let (rig, mark) = (Rig::new(), mark());
    runtime().block_on(async {
        let command = format!("echo begun; {}", three(&mark));
        let running = rig.call("shell", json!({ "command": command, "timeout_seconds": 500 }));
        let wait = async {
            all_asleep(&rig, &mark).await;
            // It has begun, and is awaited.
            until(|| progress(&rig.cx, 0).contains("begun")).await;
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(499)).await;
            assert_eq!(asleep(&mark), 3, "not yet");
            tokio::time::advance(Duration::from_secs(2)).await;
            tokio::time::resume();
        };
        let ((state, text), ()) = tokio::join!(running, wait);
        assert_eq!(asleep(&mark), 0, "the answer comes after the end");
        assert_eq!(state, ToolState::Error);
        assert!(
            text.starts_with("begun\n")
                && text.ends_with("[timed out after 500 s; all its processes were killed]"),
            "{text}"
        );
    });
}

#[test]
fn what_is_left_in_the_background_ends_with_the_command() {
    let rig = Rig::new();
    // Each waits until it is asleep, so that it has begun before it is ended.
    for (left, redirect) in [
        ("sleep MARK REDIRECT &", ""),
        ("sleep MARK REDIRECT &", "> /dev/null 2>&1"),
        ("setsid sleep MARK REDIRECT &", ""),
        ("setsid sleep MARK REDIRECT &", "> /dev/null 2>&1"),
        ("(setsid sh -c '(sleep MARK REDIRECT &) &' &)", ""),
        ("(setsid sh -c 'cd /; (nohup sleep MARK REDIRECT &) &' &)", "> /dev/null 2>&1"),
    ] {
        let mark = mark();
        let left = left.replace("MARK", &mark).replace("REDIRECT", redirect);
        for has_namespaces in [true, false] {
            let tool = shell(&rig.workspace, shell_options().with_namespaces(has_namespaces));
            let command = json!({ "command": format!("{left}\nsleep 0.3") });
            let (_, text) = block_on(call(&tool, &rig.cx, command));
            assert_eq!(asleep(&mark), 0, "{left}");
            assert_eq!(text.replace("[not confined by the kernel]\n", ""), "[exit status 0]", "{left}");
        }
    }
}

#[test]
fn the_kernel_holds_a_command_in_its_workspace() {
    [true, false].into_iter().for_each(holds);
}

fn holds(has_namespaces: bool) {
    let rig = Rig::new();
    let options = || shell_options().with_namespaces(has_namespaces);
    let home = tempfile::TempDir::with_prefix_in("mainstem-ws-", "/var/tmp").unwrap();
    std::fs::write(home.path().join("secret.txt"), SECRET).unwrap();
    let workspace = crate::Workspace::create(home.path().join("ws")).unwrap();
    let at = home.path().display().to_string();
    let tool = shell(&workspace, options());
    let run = |command: String| block_on(call(&tool, &rig.cx, json!({ "command": command }))).1;
    if run("true".to_owned()).contains("not confined") {
        not_applicable("this kernel has no Landlock");
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
    refused(&run("cat /proc/$PPID/environ; ls /proc/$PPID/fd".to_owned()));
    // Whether a process outside is visible depends on the machine.
    let this = std::process::id();
    let environment = run(format!("cat /proc/{this}/environ"));
    assert!(
        environment.contains("No such file") || environment.contains("ermission denied"),
        "{environment}"
    );
    let signal = run(format!("kill -0 {this}")).to_lowercase();
    assert!(signal.contains("no such process") || signal.contains("not permitted"), "{signal}");
    assert_eq!(std::fs::read_to_string(home.path().join("secret.txt")).unwrap(), SECRET);
    assert!(!home.path().join("new.txt").exists());
    let all = "ls /usr > /dev/null && echo x > f && mkdir d && mv f d/g && cat d/g && rm -r d && t=$(mktemp) && echo y > $t && cat $t && rm $t";
    let all = run(all.to_owned());
    assert_eq!(all, "x\ny\n[exit status 0]", "the work itself is free");
    let options = options().with_readable(home.path()).with_writable(home.path().join("more"));
    std::fs::create_dir(home.path().join("more")).unwrap();
    let tool = shell(&workspace, options);
    let text = block_on(call(
        &tool,
        &rig.cx,
        json!({ "command": "cat ../secret.txt; echo x > ../more/f; cat ../more/f; rm ../secret.txt" }),
    ))
    .1;
    assert!(text.starts_with(&format!("{SECRET}x\n")) && text.contains("ermission denied"), "{text}");
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
