//! Commands that only a server answers: links of its sessions, and those that are active.

use serde_json::Value;

use crate::support::{Done, Running, mainstem};

const TOKEN: &str = "the-token-of-the-harness";

struct Served {
    address: String,
    _server: Running,
    folder: tempfile::TempDir,
}

impl Served {
    fn start(pace: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let line = format!(
            "serve -m demo --demo-pace {pace} --bind 127.0.0.1:0 --log off --token-file tokens --journal"
        );
        let mut server = mainstem(&line).file("tokens", TOKEN).arg(folder.path().join("j.db")).start();
        Self { address: server.line().trim().to_owned(), _server: server, folder }
    }

    fn at(&self, token: &str, command: &str) -> Done {
        mainstem(command).args(&["--server", &self.address]).env("MAINSTEM_TOKEN", token).run()
    }
}

#[test]
fn a_session_is_shared_and_read_and_the_link_revoked() {
    let served = Served::start("0.01");
    let own = |command: &str| served.at(TOKEN, command);
    assert_eq!(own("run --session s Compare").code, Some(0));
    let shared = own("sessions share s --for 1day");
    let start = format!("{}/#s?link=msl", served.address);
    assert!(shared.code == Some(0) && shared.stdout.starts_with(&start), "{shared:?}");
    assert!(shared.stderr.contains("`mainstem sessions revoke s "), "{shared:?}");
    let token = shared.stdout.trim().split_once("link=").unwrap().1.to_owned();

    let exported = served.at(&token, "sessions export s");
    assert_eq!((exported.code, &exported.stdout), (Some(0), &own("sessions export s").stdout));
    for command in ["run --session s more", "sessions list", "sessions share s", "sessions rm s", "jobs list"]
    {
        let refused = served.at(&token, command);
        assert!(refused.code == Some(1) && refused.stderr.contains("only reads its session"), "{refused:?}");
    }

    let frozen = own("sessions share s --through 3 --output json");
    let frozen: Value = serde_json::from_str(&frozen.stdout).unwrap();
    assert_eq!(frozen["url"], format!("{}{}", served.address, frozen["page"].as_str().unwrap()));
    let exported = served.at(frozen["token"].as_str().unwrap(), "sessions export s");
    assert_eq!((exported.code, exported.stdout.lines().count()), (Some(0), 3), "{exported:?}");

    let links = own("sessions links s --output json").stdout;
    assert!(!links.contains(&token), "{links}");
    let links: Value = serde_json::from_str(&links).unwrap();
    let id = links[0]["id"].as_str().unwrap();
    let table = own("sessions links s").stdout;
    assert!(table.contains("all events") && table.contains("events to 3") && table.contains(id), "{table}");
    assert_eq!(own(&format!("sessions revoke s {id}")).code, Some(0));
    let over = served.at(&token, "sessions export s");
    assert!(over.code == Some(1) && over.stderr.contains("has ended or was revoked"), "{over:?}");
    // One that can't be revoked does not keep the others.
    let other = frozen["link"]["id"].as_str().unwrap();
    let again = own(&format!("sessions revoke s {id} none {other}"));
    assert!(again.stderr.contains("\"none\"") && own("sessions links s").stdout.is_empty(), "{again:?}");
    assert!(again.code == Some(1) && again.stderr.contains("there is no link"), "{again:?}");
}

#[test]
fn a_link_needs_a_server_and_a_session_with_these_events() {
    let served = Served::start("0.01");
    let check = |command: &str, code: i32, why: &str| {
        let refused = served.at(TOKEN, command);
        assert!(refused.code == Some(code) && refused.stderr.contains(why), "{command}: {refused:?}");
    };
    check("sessions share none", 1, "there is no session \"none\"; `mainstem sessions list` lists sessions");
    check("sessions share s --for 1s", 2, "a link lasts 1min to 90days");
    check("sessions links none", 1, "there is no session");
    check("sessions share s --for soon", 2, "write it like 90s, 5m or 1h 30m");
    check("sessions share s --journal j.db", 2, "cannot be used with");
    let local = mainstem("sessions links s").run();
    assert!(local.code == Some(2) && local.stderr.contains("name it, with --server URL"), "{local:?}");
}

#[test]
fn active_sessions_are_printed_until_a_signal() {
    let served = Served::start("0.3");
    let live = |more: &str| {
        let line = format!("sessions live {more}");
        mainstem(&line).args(&["--server", &served.address]).env("MAINSTEM_TOKEN", TOKEN).start()
    };
    let (mut text, mut json) = (live("--all"), live("--output json"));
    let first: Value = serde_json::from_str(&json.line()).unwrap();
    assert_eq!((&first["type"], &first["live"]), (&Value::from("summary"), &Value::from(0)));
    assert_eq!(served.at(TOKEN, "run --session s Compare").code, Some(0));
    let mut lines = Vec::new();
    while !lines.last().is_some_and(|line: &String| line.trim_end().ends_with("s  idle")) {
        lines.push(text.line());
    }
    let shown = lines.concat();
    assert!(shown.contains("  s  running  main") && lines.len() > 2, "{shown}");
    let mut kinds = Vec::new();
    while kinds.last().is_none_or(|kind| kind != "left") {
        let frame: Value = serde_json::from_str(&json.line()).unwrap();
        kinds.push(frame["type"].as_str().unwrap().to_owned());
    }
    assert!(kinds.contains(&"session".to_owned()) && kinds.contains(&"event".to_owned()), "{kinds:?}");
    for running in [text, json] {
        running.signal("INT");
        assert_eq!(running.done().code, Some(130));
    }
    let refused = served.at("not-a-token-of-this", "sessions live");
    assert!(refused.code == Some(1) && refused.stderr.contains("invalid token"), "{refused:?}");
}

#[test]
fn a_large_picture_is_sent_and_exported() {
    let served = Served::start("0.01");
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("cat.png");
    let bytes = [b"\x89PNG\r\n\x1a\n".as_slice(), &[0; 3 << 20]].concat();
    std::fs::write(&picture, bytes).unwrap();
    let done = served.at(TOKEN, &format!("run --session s --attach {} Compare", picture.display()));
    assert_eq!(done.code, Some(0), "{done:?}");

    // The server has it, and its journal.
    let exported = served.at(TOKEN, "sessions export s");
    let journal = served.folder.path().join("j.db");
    let local = mainstem("sessions export s --journal").arg(journal).run();
    for export in [&exported, &local] {
        let start: Value = serde_json::from_str(export.stdout.lines().next().unwrap()).unwrap();
        let source = &start["input"][0]["content"][2]["source"];
        assert_eq!(source["base64"].as_str().map(str::len), Some((8 + (3usize << 20)).div_ceil(3) * 4));
    }
    let replayed = mainstem("replay r.ndjson --speed max").file("r.ndjson", &exported.stdout).run();
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
}
