//! The paths that every tool refuses, so that files outside are neither read nor written.

use std::{
    fs,
    os::unix::{fs::symlink, net::UnixListener},
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use mainstem_testing::context;
use mainstem_tool::ToolState;
use serde_json::{Value, json};

use crate::{
    FILE_TOOLS, Workspaces,
    error::Written,
    rig::{Rig, SECRET, block_on, call, runtime},
};

fn arguments(tool: &str, path: &str) -> Value {
    match tool {
        "write_file" => json!({ "path": path, "content": "pwned" }),
        "edit_file" => json!({ "path": path, "old": SECRET, "new": "pwned" }),
        "glob_files" => json!({ "path": path, "pattern": "*" }),
        "grep_files" => json!({ "path": path, "pattern": "." }),
        _ => json!({ "path": path }),
    }
}

/// Creates every kind of obstacle.
fn hostile() -> Rig {
    let rig = Rig::with(&[("a.txt", "a\n"), ("dir/inner.txt", "inner\n")]);
    let link = |target: &Path, name: &str| symlink(target, rig.at(name)).unwrap();
    let relative = Path::new("../outside");
    link(&relative.join("secret.txt"), "out-file");
    link(relative, "out-dir");
    link(&rig.outside(), "out-absolute");
    link(Path::new("../../outside/secret.txt"), "dir/out-file");
    link(Path::new("dir/out-file"), "out-twice");
    link(Path::new("loop"), "loop");
    link(Path::new("there"), "here");
    link(Path::new("here"), "there");
    link(Path::new("nowhere"), "dangling");
    link(&rig.outside().join("new.txt"), "out-dangling");
    link(Path::new("/proc/self/environ"), "environ");
    link(Path::new("/dev/zero"), "zero");
    assert!(Command::new("mkfifo").arg(rig.at("fifo")).status().unwrap().success());
    link(Path::new("fifo"), "fifo-link");
    UnixListener::bind(rig.at("socket")).unwrap();
    // Only root can make one; without it the path does not exist, which is refused as well.
    let _ = Command::new("mknod").arg(rig.at("device")).args(["c", "1", "5"]).status();
    rig
}

fn outside(rig: &Rig) -> Vec<(String, String)> {
    let entries = fs::read_dir(rig.outside()).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.display().to_string(), fs::read_to_string(&path).unwrap())).collect()
}

/// Paths that every tool refuses.
const REFUSED: [&str; 47] = [
    "..",
    "../",
    "../outside/secret.txt",
    "../outside",
    "../ws/../outside/secret.txt",
    "a/../../outside/secret.txt",
    "dir/../../outside/secret.txt",
    "dir/../..",
    "./../outside/secret.txt",
    "new/../../outside/new.txt",
    ".//..//outside//secret.txt",
    "/",
    "/etc/passwd",
    "/etc",
    "//etc/passwd",
    "/dev/zero",
    "/dev/stdin",
    "/proc/self/environ",
    "/proc/self/root/etc/passwd",
    "/proc/self/cwd/Cargo.toml",
    "/tmp/mainstem-ws-new.txt",
    "out-file",
    "out-dir",
    "out-dir/",
    "out-dir/secret.txt",
    "out-dir/new.txt",
    "out-absolute/secret.txt",
    "out-dir/../outside/secret.txt",
    "out-twice",
    "dir/out-file",
    "loop",
    "loop/x",
    "here",
    "dangling",
    "out-dangling",
    "environ",
    "zero",
    "fifo",
    "fifo-link",
    "socket",
    "a\0b",
    "",
    "~",
    "~/.ssh/id_rsa",
    "a.txt/x",
    "a.txt/",
    "new/",
];

/// Paths that some tools accept.
const PARTLY: [(&str, &[&str]); 8] = [
    ("dir", DIRECTORY),
    ("dir/", DIRECTORY),
    (".", DIRECTORY),
    ("dir/..", DIRECTORY),
    ("nope", WRITE),
    ("..\\..\\outside", WRITE),
    ("．．", WRITE),
    ("\u{202e}txt.\n\u{1b}[2J", WRITE),
];

const DIRECTORY: &[&str] = &["list_files", "glob_files", "grep_files"];
const WRITE: &[&str] = &["write_file"];

#[test]
fn no_path_leads_out_or_hangs_and_each_error_names_it() {
    let rig = hostile();
    let root = rig.workspace.root().display();
    let made = [
        rig.outside().join("secret.txt").display().to_string(),
        format!("{root}/../outside/secret.txt"),
        format!("{root}x/a.txt"),
        "../".repeat(60) + "etc/passwd",
        "d/".repeat(3000) + "x",
        "n".repeat(300),
    ];
    let refused = REFUSED.into_iter().chain(made.iter().map(String::as_str)).map(|path| (path, &[][..]));
    for (path, may) in refused.chain(PARTLY).chain([("device", WRITE)]) {
        for tool in FILE_TOOLS {
            check(&rig, tool, path, may.contains(&tool));
        }
    }
    assert!(!Path::new("/tmp/mainstem-ws-new.txt").exists());
    assert_eq!(rig.read("a.txt"), b"a\n");
}

#[track_caller]
fn check(rig: &Rig, tool: &str, path: &str, may: bool) {
    let before = outside(rig);
    let (state, text) = block_on(rig.call(tool, arguments(tool, path)));
    assert!(!text.contains(SECRET) && !text.contains("root:"), "{tool} {path:?} reads outside: {text}");
    assert_eq!(outside(rig), before, "{tool} {path:?} writes outside");
    if may && state == ToolState::Success {
        if tool == "write_file" {
            assert_eq!(rig.read(path), b"pwned");
            fs::remove_file(rig.at(path)).unwrap();
        }
        return;
    }
    assert_eq!(state, ToolState::Error, "{tool} {path:?}: {text}");
    assert!(text.contains(&Written::new(path).to_string()), "{tool} {path:?}: {text}");
    assert!(text.len() < 600 && !text.contains(['\n', '\0', '\u{1b}']), "{tool} {path:?}: {text:?}");
}

#[test]
fn errors_say_what_to_do() {
    let rig = hostile();
    #[track_caller]
    fn check(rig: &Rig, tool: &str, path: &str, expected: &str) {
        assert_eq!(rig.err(tool, arguments(tool, path)), expected);
    }
    let out = "leads out of the workspace, which is all that can be used; give a path inside it, such as \"src/main.rs\"";
    check(&rig, "read_file", "../x", &format!("\"../x\" {out}"));
    check(&rig, "read_file", "out-file", &format!("\"out-file\" {out}"));
    check(&rig, "write_file", "out-dir/new.txt", &format!("\"out-dir/new.txt\" {out}"));
    check(&rig, "list_files", "/etc", &format!("\"/etc\" {out}"));
    check(&rig, "read_file", "nope", "\"nope\" does not exist; list_files shows what does");
    check(&rig, "read_file", "dir", "\"dir\" is a directory; name a file in it (list_files shows them)");
    check(&rig, "write_file", "dir", "\"dir\" is a directory; name a file in it (list_files shows them)");
    check(
        &rig,
        "read_file",
        "fifo",
        "\"fifo\" is a named pipe, which is never opened; only regular files can be used",
    );
    check(
        &rig,
        "grep_files",
        "socket",
        "\"socket\" is a socket, which is never opened; only regular files can be used",
    );
    check(
        &rig,
        "write_file",
        "fifo",
        "\"fifo\" is a named pipe, which is never opened; only regular files can be used",
    );
    check(&rig, "read_file", "a.txt/x", "\"a.txt/x\" goes on after a file as if that were a directory");
    check(&rig, "write_file", "dangling", "\"dangling\" is a dangling symbolic link; write to another path");
    check(&rig, "write_file", "new/", "\"new/\" ends in a slash; give the path of a file");
    check(
        &rig,
        "glob_files",
        "a.txt",
        "\"a.txt\" is not a directory; give the path of a directory, or none for the whole workspace",
    );
}

#[test]
fn links_and_absolute_paths_that_stay_inside_work() {
    let rig = Rig::with(&[("dir/inner.txt", "inner\n")]);
    symlink("dir", rig.at("link")).unwrap();
    symlink("dir/inner.txt", rig.at("file-link")).unwrap();
    symlink("../dir/inner.txt", rig.at("dir/round")).unwrap();
    let absolute = rig.at("dir/inner.txt");
    for path in
        ["link/inner.txt", "file-link", "dir/round", "link/../dir/inner.txt", absolute.to_str().unwrap()]
    {
        assert_eq!(rig.ok("read_file", json!({ "path": path })), "1\tinner", "{path}");
    }
    rig.ok("write_file", json!({ "path": "file-link", "content": "new" }));
    assert_eq!(rig.read("dir/inner.txt"), b"new", "the file behind the link is written");
    assert!(rig.at("file-link").is_symlink());
    rig.ok("write_file", json!({ "path": "link/sub/more.txt", "content": "more" }));
    assert_eq!(rig.read("dir/sub/more.txt"), b"more");
    assert_eq!(
        rig.ok("list_files", json!({ "path": "link" })),
        "dir/inner.txt\ndir/round -> ../dir/inner.txt\ndir/sub/"
    );
}

#[test]
fn a_walk_neither_follows_links_nor_opens_what_is_no_file() {
    let rig = hostile();
    let _ = fs::remove_file(rig.at("device"));
    assert_eq!(rig.ok("grep_files", json!({ "pattern": "." })), "a.txt:1:a\ndir/inner.txt:1:inner");
    let found = rig.ok("glob_files", json!({ "pattern": "**/*.txt" }));
    assert_eq!(found, "a.txt\ndir/inner.txt");
    let listed = rig.ok("list_files", json!({ "depth": 9 }));
    assert!(!listed.contains("out-dir/") && listed.contains("out-dir -> ../outside\n"), "{listed}");
    assert!(listed.contains("fifo (not a regular file)\n"), "{listed}");
}

#[test]
fn tools_that_change_nothing_say_so() {
    let rig = Rig::new();
    let read_only = FILE_TOOLS.map(|tool| rig.tool(tool).is_read_only());
    assert_eq!(read_only, [true, false, false, true, true, true]);
    assert!(!rig.tool("shell").is_read_only());
    let names: Vec<_> = rig.workspace.tools().iter().map(|tool| tool.spec().name).collect();
    assert_eq!(names, FILE_TOOLS, "shell is not among them");
}

#[test]
fn what_is_swapped_meanwhile_neither_leads_out_nor_hangs() {
    let rig = Rig::with(&[("ours/secret.txt", "ours\n"), ("parts/file", "ours\n")]);
    symlink("../outside", rig.at("theirs")).unwrap();
    assert!(Command::new("mkfifo").arg(rig.at("parts/fifo")).status().unwrap().success());
    let before = outside(&rig);
    let is_done = AtomicBool::new(false);
    let answers = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                swap(&rig);
            }
        });
        let answers: Vec<_> = (0..900).map_while(|round| call_while_swapped(&rig, round)).collect();
        is_done.store(true, Ordering::Relaxed);
        answers
    });
    assert_eq!(answers.len(), 900, "it hangs");
    for text in answers {
        assert!(!text.contains(SECRET) && WHILE_SWAPPED.iter().any(|known| text.contains(known)), "{text:?}");
    }
    assert_eq!(outside(&rig), before);
}

/// What the tools answer while files are exchanged.
const WHILE_SWAPPED: [&str; 9] = [
    "ours",
    "pipe",
    "leads out",
    "not exist",
    "[no match]",
    "edited",
    "not occur",
    // The system's error if two calls create one directory.
    "File exists",
    // The system's error for a link where a directory was a moment ago.
    "goes on after a file",
];

/// Exchanges: `d` is a directory, a link that leads out, or missing; `p` a file, a pipe, or
/// missing.
fn swap(rig: &Rig) {
    for (from, to) in [("ours", "d"), ("d", "ours"), ("theirs", "d"), ("d", "theirs")] {
        let _ = fs::rename(rig.at(from), rig.at(to));
    }
    // An edit may have created it.
    let _ = fs::remove_dir(rig.at("d"));
    for part in ["file", "fifo"] {
        let _ = fs::remove_file(rig.at("p"));
        let _ = fs::hard_link(rig.at("parts").join(part), rig.at("p"));
    }
}

/// Returns the result; `None` if the call hangs.
fn call_while_swapped(rig: &Rig, round: usize) -> Option<String> {
    let path = ["d/secret.txt", "p"][round / 3 % 2];
    let (tool, arguments) = match round % 3 {
        0 => ("read_file", json!({ "path": path })),
        1 => ("grep_files", json!({ "pattern": "." })),
        _ => ("edit_file", json!({ "path": path, "old": "s\n", "new": "s!\n", "replace_all": true })),
    };
    let runtime = runtime();
    let call = async { tokio::time::timeout(Duration::from_secs(20), rig.call(tool, arguments)).await };
    let answer = runtime.block_on(call).ok();
    runtime.shutdown_background();
    Some(answer?.1)
}

#[test]
fn a_cancel_ends_the_work_on_one_file() {
    let rig = Rig::with(&[("a.txt", "line\n")]);
    let arguments = |tool| match tool {
        "grep_files" => json!({ "path": "a.txt", "pattern": "line" }),
        _ => json!({ "path": "a.txt" }),
    };
    for tool in ["read_file", "grep_files"] {
        let (resolved, token) = (rig.workspace.clone(), rig.cx.cancellation().child_token());
        let cancels = token.clone();
        // The last step before the file is opened.
        let workspaces = Workspaces::new(move |_| {
            cancels.cancel();
            Ok(resolved.clone())
        });
        let cx = context("s").with_cancel(token).build();
        let called = workspaces.tools().into_iter().find(|found| found.spec().name == tool).unwrap();
        let (state, text) = block_on(call(&called, &cx, arguments(tool)));
        let expected = "stopped before it was done: the run was cancelled";
        assert_eq!((state, &*text), (ToolState::Error, expected), "{tool}");
    }
}
