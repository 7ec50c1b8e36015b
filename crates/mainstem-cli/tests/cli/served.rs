//! Links of a server's sessions, from the command line.

use serde_json::Value;

use crate::support::{Done, Running, mainstem};

const TOKEN: &str = "the-token-of-the-harness";

struct Served {
    address: String,
    _server: Running,
    _folder: tempfile::TempDir,
}

impl Served {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let line =
            "serve -m demo --demo-pace 0.01 --bind 127.0.0.1:0 --log off --token-file tokens --journal";
        let mut server = mainstem(line).file("tokens", TOKEN).arg(folder.path().join("j.db")).start();
        Self { address: server.line().trim().to_owned(), _server: server, _folder: folder }
    }

    fn at(&self, token: &str, command: &str) -> Done {
        mainstem(command).args(&["--server", &self.address]).env("MAINSTEM_TOKEN", token).run()
    }
}

#[test]
fn a_session_is_shared_and_read_and_the_link_revoked() {
    let served = Served::start();
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
    let again = own(&format!("sessions revoke s {id}"));
    assert!(again.code == Some(1) && again.stderr.contains("there is no link"), "{again:?}");
}

#[test]
fn a_link_needs_a_server_and_a_session_with_these_events() {
    let served = Served::start();
    let check = |command: &str, code: i32, why: &str| {
        let refused = served.at(TOKEN, command);
        assert!(refused.code == Some(code) && refused.stderr.contains(why), "{command}: {refused:?}");
    };
    check("sessions share none", 1, "there is no session \"none\"; `mainstem sessions list` lists sessions");
    check("sessions share s --for 1s", 1, "a link lasts 60 to 7776000 seconds");
    check("sessions share s --for soon", 2, "write it like 90s, 5m or 1h 30m");
    check("sessions share s --journal j.db", 2, "cannot be used with");
    let local = mainstem("sessions links s").run();
    assert!(
        local.code == Some(2) && local.stderr.contains("name the server, with --server URL"),
        "{local:?}"
    );
}
