//! Commands of agents: that none outlives the harness, what they may use up, and what the machine
//! holds them with.

use std::{
    net::TcpListener,
    path::Path,
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use crate::{
    files::{calls, cli, results, run, shell},
    server::Server,
    support::{Cli, mainstem},
};

/// Longer than anything here takes, on a busy machine too.
const LIMIT: Duration = Duration::from_secs(20);

/// How many processes have the mark in their arguments.
fn marked(mark: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read_to_string(process.path().join("cmdline")).ok());
    lines.filter(|line| line.starts_with("sleep\0") && line.contains(mark)).count()
}

#[track_caller]
fn until(is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < LIMIT, "it does not happen");
        sleep(Duration::from_millis(5));
    }
}

/// A number of seconds that nothing else sleeps.
fn mark(test: u32) -> String {
    format!("1000.{}{test}", std::process::id())
}

#[test]
fn nothing_is_left_of_a_command_when_the_harness_is_killed() {
    let mark = mark(1);
    // Its words are those of the issue, once with a parent that waits and once without.
    let command = format!("setsid sleep {mark} & (setsid sh -c 'sleep {mark} & wait' &) ; sleep {mark}");
    let server = calls(vec![shell(Box::leak(command.into_boxed_str()))]);
    let running = cli(&server, "--shell").arg("Hi").streams(Stdio::null(), Stdio::null()).spawn();
    until(|| marked(&mark) == 3);
    running.signal("KILL");
    until(|| marked(&mark) == 0);
}

#[test]
fn nothing_is_left_of_a_command_when_its_terminal_is_closed() {
    let mark = mark(2);
    let command = format!("trap '' HUP TERM; setsid sleep {mark} & sleep {mark}");
    let server = calls(vec![shell(Box::leak(command.into_boxed_str()))]);
    let mut running = cli(&server, "--shell").arg("Hi").streams(Stdio::null(), Stdio::null()).spawn();
    until(|| marked(&mark) == 2);
    running.signal("HUP");
    assert_eq!(running.wait().code(), Some(129));
    assert_eq!(marked(&mark), 0, "they end before the harness does");
}

/// A server that ignores the end of its stdin, and leaves something in a session of its own.
const STUBBORN: &str = r#"
trap '' TERM HUP
setsid sleep MARK &
read -r line; id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
sleep MARK
"#;

#[test]
fn nothing_is_left_of_an_mcp_server_when_the_harness_is_killed() {
    let mark = mark(3);
    let server = calls(vec![shell("true")]);
    let config = "[mcp.stubborn]\ncommand = 'sh'\nargs = ['server.sh']\n";
    let with_server = || {
        let cli = cli(&server, "--trust")
            .file("mainstem.toml", config)
            .file("server.sh", &STUBBORN.replace("MARK", &mark));
        cli.arg("Hi").streams(Stdio::null(), Stdio::null()).spawn()
    };
    let running = with_server();
    until(|| marked(&mark) == 2);
    running.signal("KILL");
    until(|| marked(&mark) == 0);
    // Nor when it ends by itself.
    let mut running = with_server();
    until(|| marked(&mark) == 2);
    running.signal("TERM");
    running.wait();
    until(|| marked(&mark) == 0);
}

#[test]
fn what_was_started_to_survive_its_terminal_does() {
    let server = calls(vec![shell("sleep 1; echo survived")]);
    let mut ignoring = Command::new("sh");
    ignoring.args([
        "-c",
        "trap '' HUP; exec \"$0\" run --shell --progress quiet Hi",
        env!("CARGO_BIN_EXE_mainstem"),
    ]);
    let dir = tempfile::tempdir().unwrap();
    ignoring.env_clear().env("HOME", dir.path()).env("OPENAI_BASE_URL", server.url()).current_dir(dir.path());
    let mut running = ignoring.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    until(|| !server.requests().is_empty());
    let kill = format!("kill -HUP {}", running.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    assert_eq!(running.wait().unwrap().code(), Some(0));
    assert!(results(&server)[0].starts_with("survived\n"), "{:?}", results(&server));
}

#[test]
fn commands_can_be_without_a_network() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    // bash can connect by itself; where there is none, the answer is another.
    let command = format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected'");
    let connect: &'static str = Box::leak(command.into_boxed_str());
    let answer = |arguments: &str, config: &str| {
        let server = calls(vec![shell(connect)]);
        run(cli(&server, arguments).arg("--trust").file("mainstem.toml", config));
        results(&server).remove(0)
    };
    let connected = answer("--shell", "");
    assert!(connected.starts_with("connected\n") && listener.accept().is_ok(), "{connected}");
    for (arguments, config) in [
        ("--shell --shell-network off", ""),
        ("--shell --shell-network off", "shell_network = 'on'"),
        ("--shell", "shell_network = 'off'"),
    ] {
        let refused = answer(arguments, config);
        assert!(refused.contains("Network is unreachable"), "{arguments} {config}: {refused}");
        assert!(listener.accept().is_err());
    }
    assert!(answer("--shell --shell-network on", "shell_network = 'off'").starts_with("connected\n"));
}

#[test]
fn limits_of_commands_can_be_set() {
    let answer = |arguments: &str, config: &str| {
        let server = calls(vec![shell("cat /dev/zero > big")]);
        run(cli(&server, arguments).arg("--trust").file("mainstem.toml", config));
        results(&server).remove(0)
    };
    let config = "[shell_limits]\nfile_size = '1MiB'\nprocesses = 64\n";
    let reached = answer("--shell", config);
    assert!(reached.contains("the limit of a file's size, 1 MiB, was reached"), "{reached}");
    let reached = answer("--shell --shell-limit file_size=64KiB --shell-limit processes=9", config);
    assert!(reached.contains("the limit of a file's size, 64 KiB, was reached"), "{reached}");
    let done = mainstem("run --shell --shell-limit disk=1 Hi").run();
    assert!(
        done.code == Some(2) && done.stderr.contains("unknown limit `disk`, expected one of `cpu`"),
        "{done:?}"
    );
    let done = mainstem("doctor").file("mainstem.toml", "[shell_limits]\nmemory = 'much'\n").run();
    let wrong = "`much` is not a value for the limit `memory`; write it like `512MiB`";
    assert!(done.stdout.contains(wrong), "{done:?}");
}

#[test]
fn doctor_shows_what_holds_commands() {
    let config = "shell_network = 'off'\n[shell_limits]\nprocesses = 7\n";
    let done = mainstem("doctor -m demo --trust").file("mainstem.toml", config).run();
    let line = done.stdout.lines().find(|line| line.contains("shell: ")).unwrap_or_default();
    assert!(line.contains(" namespace") && line.contains("network off"), "{done:?}");
    assert!(line.ends_with("limits: CPU time 1800 s, memory 4 GiB, a file 2 GiB, 7 processes"), "{done:?}");
    let landlock =
        std::fs::read_to_string("/sys/kernel/security/lsm").is_ok_and(|all| all.contains("landlock"));
    assert!(!landlock || line.starts_with("✔ shell: files confined by Landlock"), "{done:?}");
}

/// Runs git in a directory, as its user would.
fn git(dir: &Path, arguments: &str) -> String {
    let git =
        Command::new("git").args(arguments.split_whitespace()).current_dir(dir).env("HOME", dir).output();
    let git = git.expect("git is needed for this test");
    String::from_utf8_lossy(&[git.stdout, git.stderr].concat()).into_owned()
}

#[test]
fn git_runs_nothing_that_a_command_has_left() {
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), "init -q .");
    git(dir.path(), "init -q vendor/x");
    let config = "printf '[core]\\n repositoryformatversion = 0\\n fsmonitor = \"touch MARK; false\"\\n'";
    let config = config.replace("MARK", dir.path().join("ran").to_str().unwrap());
    let common = format!("mkdir c && cp -r .git/* c/ && {config} > c/config && echo ../c > .git/commondir");
    let commands = [
        common,
        format!("{config} >> .git/config"),
        format!("{config} > .git/config.worktree"),
        format!("{config} >> vendor/x/.git/config"),
        format!("mkdir new && cp -r .git new/ && {config} > new/.git/config"),
    ];
    let commands: Vec<_> =
        commands.into_iter().map(|command| shell(Box::leak(command.into_boxed_str()))).collect();
    let server = calls(commands);
    run(cli(&server, "--shell -w").arg(dir.path()));
    for repository in [".", "vendor/x", "new"] {
        git(&dir.path().join(repository), "status");
        assert!(!dir.path().join("ran").exists(), "{repository}: {:#?}", results(&server));
    }
    let told = &results(&server)[4];
    assert!(
        told.contains("moved to \"new/.git.set-aside\"") && told.contains("shell(path: new/.git/**)"),
        "{told}"
    );
}

#[test]
fn commands_change_no_record_and_no_git_unless_the_user_allows_it() {
    let commit = "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git log --oneline | wc -l";
    let answers = |cli: &dyn Fn(&Server) -> Cli| {
        let server = calls(vec![shell(commit), shell("echo x > j.db"), shell("echo x >> j.db-wal")]);
        run(cli(&server));
        results(&server)
    };
    let line = "--shell --session s --journal j.db";
    let told = answers(&|server| cli(server, line));
    assert!(told[0].contains("\".git\" is protected"), "{told:?}");
    assert!(told[1..].iter().all(|told| told.contains("Read-only file system")), "{told:?}");
    let rule = "[permissions]\nallow = ['shell(path: .git/**)']\n";
    let told = answers(&|server| cli(server, line).file(".config/mainstem/config.toml", rule));
    assert_eq!(told[0], "1\n[exit status 0]");
    let told = answers(&|server| cli(server, line).arg("--trust").file("mainstem.toml", rule));
    assert!(told[0].contains("\".git\" is protected"), "a rule of the folder is none of the user: {told:?}");
}
