//! `serve --session-files`: a session finds its files at whatever server continues it.

use std::{
    env,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::json;
use tempfile::TempDir;

use crate::{
    files::{calls, results},
    server::Server,
    support::{Cli, mainstem},
};

const TOKEN: &str = "the-token-of-the-harness";

/// Runs once at a server with a workspace of its own, which is then killed; the last one deletes
/// the session first. Returns what the model was told its calls came to.
fn served(
    model: &Server,
    journal: &Path,
    files: &str,
    environment: &[(&str, &str)],
    last: bool,
) -> Vec<String> {
    let line = "serve --bind 127.0.0.1:0 --log off --token-file tokens";
    let serve = mainstem(line).file("tokens", TOKEN).arg("--journal").arg(journal);
    let serve = serve.args(&["--session-files", files]).env("OPENAI_BASE_URL", &model.url());
    let serve = environment.iter().fold(serve, |serve, (name, value)| serve.env(name, value));
    let mut server = serve.start();
    let address = server.line().trim().to_owned();
    let at = |command: &str| -> Cli {
        mainstem(command).args(&["--server", &address]).env("MAINSTEM_TOKEN", TOKEN)
    };
    let done = at("run --session s --progress quiet Hi").run();
    assert_eq!((done.code, &*done.stdout), (Some(0), "Done.\n"), "{done:?}");
    if last {
        let deleted = at("sessions rm s").run();
        assert_eq!(deleted.code, Some(0), "{deleted:?}");
        server.signal("TERM");
        assert_eq!(server.done().code, Some(0));
    } else {
        server.signal("KILL");
        server.done();
    }
    results(model)
}

fn check(files: &str, environment: &[(&str, &str)], objects: &dyn Fn() -> usize) {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("j.db");
    let write = ("write_file", json!({ "path": "notes/plan.md", "content": "1. look" }));
    let told = served(&calls(vec![write]), &journal, files, environment, false);
    assert_eq!(told, ["created \"notes/plan.md\" (7 bytes)"]);
    assert_eq!(objects(), 2, "a file and a manifest");

    let read = ("read_file", json!({ "path": "notes/plan.md" }));
    // The conversation has the call of the first server, too.
    let model = calls(vec![("list_files", json!({})), ("list_files", json!({})), read]);
    let told = served(&model, &journal, files, environment, true);
    assert_eq!(told.last().unwrap(), "1\t1. look", "{told:?}");
    assert_eq!(objects(), 0, "a deleted session leaves nothing");
}

#[test]
fn a_session_finds_its_files_at_another_server() {
    let store = tempfile::tempdir().unwrap();
    let files = store.path().join("made/of/this");
    let objects = || walk(&files);
    check(files.to_str().unwrap(), &[], &objects);
}

/// The store of a session that a server has left, with one file.
fn left() -> (TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (journal, files) = (folder.path().join("j.db"), folder.path().join("files"));
    let write = ("write_file", json!({ "path": "notes/plan.md", "content": "1. look" }));
    served(&calls(vec![write]), &journal, files.to_str().unwrap(), &[], false);
    assert_eq!(walk(&files), 2, "a file and a manifest");
    (folder, journal, files)
}

#[test]
fn a_journal_s_session_is_deleted_with_its_files() {
    for command in ["sessions rm s", "sessions prune --keep 0s"] {
        let (_folder, journal, files) = left();
        let delete = |flags: &[&str]| mainstem(command).arg("--journal").arg(&journal).args(flags).run();
        if command.contains("prune") {
            let planned = delete(&["--dry-run", "--session-files", files.to_str().unwrap()]);
            assert_eq!((planned.code, walk(&files)), (Some(0), 2), "{planned:?}");
        }
        // The files of a session that can't be deleted are left, and deleted by a further call.
        let objects = files.join("sessions/s");
        let hidden = files.join("hidden");
        std::fs::rename(&objects, &hidden).unwrap();
        std::fs::write(&objects, "no directory").unwrap();
        let deleted = delete(&["--session-files", files.to_str().unwrap()]);
        assert_eq!(deleted.code, Some(1), "{deleted:?}");
        assert!(deleted.stderr.contains("but not its files"), "{deleted:?}");
        std::fs::remove_file(&objects).unwrap();
        std::fs::rename(&hidden, &objects).unwrap();
        let again =
            mainstem("sessions rm s --session-files").arg(&files).arg("--journal").arg(&journal).run();
        assert_eq!((again.code, walk(&files)), (Some(0), 0), "{again:?}");
        assert!(mainstem("sessions list").arg("--journal").arg(&journal).run().stdout.lines().count() < 2);
    }
}

#[test]
fn files_of_a_session_that_can_t_be_deleted_are_named() {
    let (_folder, journal, _files) = left();
    let wrong = |flags: &[&str]| mainstem("sessions rm s").arg("--journal").arg(&journal).args(flags).run();
    let none = wrong(&["--session-files", "s3:///path"]);
    assert_eq!(none.code, Some(3), "{none:?}");
    assert!(none.stderr.contains("--session-files: "), "{none:?}");
    let mistyped = wrong(&["--session-files", "nowhere"]);
    assert_eq!(mistyped.code, Some(3), "{mistyped:?}");
    assert!(mistyped.stderr.contains("there is no directory nowhere"), "{mistyped:?}");
    let served = mainstem("sessions rm s --server http://127.0.0.1:1 --session-files d").run();
    assert_eq!(served.code, Some(2), "{served:?}");
    assert!(served.stderr.contains("--session-files is for a journal"), "{served:?}");
}

fn walk(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries.map(|entry| entry.unwrap().path()).map(|path| if path.is_dir() { walk(&path) } else { 1 }).sum()
}

/// Moto, which has S3's API and is not ours.
struct Moto {
    process: Child,
    port: u16,
}

impl Moto {
    /// Starts it with a bucket; `None` if it is not installed.
    fn start() -> Option<Self> {
        let Some(packages) = env::var_os("MAINSTEM_PROTOCOLS") else {
            assert!(env::var_os("CI").is_none(), "MAINSTEM_PROTOCOLS is not set");
            return None;
        };
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(Path::new(&packages).join("s3/python/bin/moto_server"));
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let moto = Self { process, port };
        let end = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "moto does not answer");
            sleep(Duration::from_millis(50));
        }
        assert!(moto.ask("PUT", "/files").starts_with("HTTP/1.1 200"));
        Some(moto)
    }

    fn ask(&self, method: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let host = "Host: 127.0.0.1\r\nConnection: close\r\nContent-Length: 0";
        write!(stream, "{method} {path} HTTP/1.1\r\n{host}\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    fn objects(&self) -> usize {
        self.ask("GET", "/files?list-type=2").matches("<Key>agents/sessions/").count()
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

#[test]
fn a_bucket_of_s3_keeps_the_files() {
    let Some(moto) = Moto::start() else { return };
    let endpoint = format!("http://127.0.0.1:{}", moto.port);
    let environment = [
        ("AWS_ENDPOINT_URL", &*endpoint),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret-of-the-store"),
        ("AWS_REGION", "eu-central-1"),
    ];
    check("s3://files/agents", &environment, &|| moto.objects());
}

#[test]
fn a_store_that_is_none_is_refused() {
    let journal = tempfile::tempdir().unwrap();
    let at = journal.path().join("j.db");
    std::fs::write(journal.path().join("file"), "").unwrap();
    let below = journal.path().join("file/below");
    let rows = [
        (
            "ftp://host/files",
            "ftp://host/files is not a store of files: expected a directory, or s3://BUCKET/PATH",
        ),
        (below.to_str().unwrap(), "can't create the directory"),
        ("s3:///path", "--session-files: "),
    ];
    for (files, why) in rows {
        let serve = mainstem("serve --bind 127.0.0.1:0 -m gpt-4o --log off --journal").arg(&at);
        let done = serve.args(&["--session-files", files]).env("OPENAI_API_KEY", "key").run();
        assert!(done.code == Some(3) && done.stderr.contains(why), "{files}: {done:?}");
    }
    let mut demo = mainstem("serve -m demo --bind 127.0.0.1:0 --log off --journal").arg(&at);
    demo = demo.args(&["--session-files", journal.path().join("d").to_str().unwrap()]);
    let mut demo = demo.start();
    demo.line();
    demo.signal("TERM");
    let demo = demo.done();
    assert!(demo.stderr.contains("--session-files is not used"), "{demo:?}");
    let alone = mainstem("serve -m demo --session-files d").run();
    assert!(alone.code == Some(2) && alone.stderr.contains("--journal"), "{alone:?}");
}
