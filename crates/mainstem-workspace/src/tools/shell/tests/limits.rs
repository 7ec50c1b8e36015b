//! The limits of a command, and its network.

use std::{
    io::ErrorKind,
    net::TcpListener,
    process::Command,
    time::{Duration, Instant},
};

use mainstem_guard::{Limits, Network};
use mainstem_tool::ToolState;
use serde_json::json;

use crate::rig::{Rig, block_on, call, not_applicable, shell, shell_options};

/// Returns the result with these limits, the same with namespaces and without.
#[track_caller]
fn with(limits: &[(&str, &str)], command: &str) -> (ToolState, String) {
    let [with, without] = [true, false].map(|has_namespaces| once(has_namespaces, limits, command));
    assert_eq!(with, without);
    with
}

#[track_caller]
fn once(has_namespaces: bool, limits: &[(&str, &str)], command: &str) -> (ToolState, String) {
    let rig = Rig::new();
    let mut all = Limits::default();
    limits.iter().for_each(|(name, value)| all.set(name, value).unwrap());
    let tool = shell(&rig.workspace, shell_options().with_namespaces(has_namespaces).with_limits(all));
    let started = Instant::now();
    let answer = block_on(call(&tool, &rig.cx, json!({ "command": command })));
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    answer
}

#[track_caller]
fn check(limits: &[(&str, &str)], command: &str, said: &str) {
    let (state, text) = with(limits, command);
    assert_eq!(state, ToolState::Error, "{text}");
    assert!(text.ends_with(said), "{text}");
}

#[test]
fn a_memory_hog_is_ended() {
    let said = "[the limit of memory, 96 MiB, was reached; all its processes were killed]";
    // The last line is as long as the input, and held until it is read; each of the two alone is
    // within the limit.
    check(&[("memory", "96MiB")], "head -c 300M /dev/zero | tail -n 1 | (sleep 20; wc -c)", said);
    let two = "for i in 1 2; do (head -c 64M /dev/zero | tail -n 1 | (sleep 20; wc -c)) & done; wait";
    check(&[("memory", "96MiB")], two, said);
}

#[test]
fn memory_that_processes_share_counts_once() {
    // A shell of at least 40 MiB, and four that share its pages.
    let command = "x=$(head -c 40M /dev/zero | tr '\\0' a); for i in 1 2 3 4; do (sleep 1; : ) & done; wait; echo ${#x}";
    let (state, text) = once(true, &[("memory", "160MiB")], command);
    assert_eq!((state, text.contains("41943040\n")), (ToolState::Success, true), "{text}");
}

#[test]
fn the_largest_limit_is_none() {
    let most = u64::MAX.to_string();
    let (state, text) = with(&[("cpu", &most), ("memory", &most), ("file_size", &most)], "echo x > f");
    assert_eq!(state, ToolState::Success, "{text}");
}

#[test]
fn a_cpu_burner_is_ended() {
    let said = "[the limit of CPU time, 1 s, was reached; all its processes were killed]";
    check(&[("cpu", "1s")], "while :; do :; done", said);
    // Each process is within the limit.
    check(
        &[("cpu", "1s")],
        "while :; do sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'; done",
        said,
    );
}

#[test]
fn an_endless_file_is_cut() {
    let (limits, reached) = ([("file_size", "1MiB")], ": the limit of a file's size, 1 MiB, was reached]");
    check(&limits, "cat /dev/zero > big", reached);
    check(&limits, "true; cat /dev/zero > big; exit $?", reached);
    let (state, text) = with(&limits, "cat /dev/zero > big; stat -c %s big");
    assert_eq!(state, ToolState::Success);
    assert!(text.ends_with("1048576\n[exit status 0]"), "{text}");
}

#[test]
fn a_fork_bomb_is_ended() {
    let said = "[the limit of processes, 40 at once, was reached; all its processes were killed]";
    let many = "i=0; while [ $i -lt 300 ]; do sleep 60 & i=$((i+1)); done; wait";
    check(&[("processes", "40")], many, said);
    // Bounded by its depth: 2^9 processes, each in a session of its own. A shell that can't fork
    // may still say so before it is killed.
    let bomb = r#"cat > bomb <<'END'
[ $1 -gt 0 ] || exec sleep 60
setsid sh bomb $(($1-1)) & setsid sh bomb $(($1-1)) & wait
END
sh bomb 9 2>/dev/null"#;
    check(&[("processes", "40")], bomb, said);
}

#[test]
fn limits_leave_room_for_work() {
    let (state, text) =
        with(&[], "seq 1 20 | xargs -P 8 -I{} sh -c 'head -c 1M /dev/zero > f{}'; ls | wc -l");
    assert_eq!(
        (state, &*text.replace("[not confined by the kernel]\n", "")),
        (ToolState::Success, "20\n[exit status 0]")
    );
}

#[test]
fn without_a_network_nothing_is_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let rig = Rig::new();
    if Command::new("python3").arg("--version").output().is_err() {
        not_applicable("there is no python3");
        return;
    }
    let run = |network, code: &str| {
        let code = code.replace("PORT", &port.to_string());
        let command = json!({ "command": format!("python3 -c '{code}'") });
        let [with, without] = [true, false].map(|has_namespaces| {
            let options = shell_options().with_namespaces(has_namespaces).with_network(network);
            block_on(call(&shell(&rig.workspace, options), &rig.cx, command.clone()))
        });
        assert_eq!(with, without);
        with
    };
    let connect = "import socket; socket.create_connection((\"127.0.0.1\", PORT), 5); print(\"connected\")";
    let (state, text) = run(Network::On, connect);
    assert_eq!(state, ToolState::Success, "{text}");
    assert!(
        listener.accept().is_ok() && listener.accept().is_ok() && text.starts_with("connected\n"),
        "{text}"
    );
    let (state, text) = run(Network::Off, connect);
    assert_eq!(state, ToolState::Error);
    assert!(text.contains("Network is unreachable"), "{text}");
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    for other in [
        "AF_INET, socket.SOCK_DGRAM",
        "AF_INET6",
        "AF_NETLINK, socket.SOCK_RAW",
        "AF_PACKET, socket.SOCK_RAW",
    ] {
        let (_, text) = run(Network::Off, &format!("import socket; socket.socket(socket.{other})"));
        assert!(text.contains("Network is unreachable"), "{other}: {text}");
    }
    if cfg!(target_arch = "x86_64") {
        // The same call by its number in x32, the other table of system calls of this architecture.
        let call = "import ctypes, os; c = ctypes.CDLL(None, use_errno=True); c.syscall(0x40000029, 2, 1, 0); \
                    print(os.strerror(ctypes.get_errno()))";
        let (_, text) = run(Network::Off, call);
        assert!(text.starts_with("Network is unreachable\n"), "{text}");
    }
    let (_, text) =
        run(Network::Off, "import socket; a, b = socket.socketpair(); a.send(b\"x\"); print(b.recv(1))");
    assert!(text.starts_with("b'x'\n"), "{text}");
}
