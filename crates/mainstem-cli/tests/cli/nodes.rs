//! `mainstem migrate` and `nodes`, and servers that share a database.
#![cfg(unix)]

use mainstem_testing::Postgres;

use crate::{
    server::{Server, Step},
    support::{Done, mainstem},
};

fn at(command: &str, url: &str) -> Done {
    mainstem(command).arg("--journal").arg(url).run()
}

#[test]
fn servers_share_a_database_and_stop_when_they_are_asked_to() {
    let database = Postgres::start();
    let url = database.url();
    let shown = url.split('?').next().unwrap();
    for expected in ["the tables are created, in version 4", "the tables have version 4 already"] {
        let done = at("migrate", &url);
        assert_eq!((done.code, done.stdout), (Some(0), format!("{shown}: {expected}\n")));
    }
    let serve = |name: &str| {
        let serve = mainstem("serve -m demo --bind 127.0.0.1:0 --log off --journal").arg(&url);
        let mut server = serve.env("HOSTNAME", name).start();
        (server.line(), server)
    };
    let ((_, first), (second_at, second)) = (serve("first"), serve("second"));
    let list = at("nodes list", &url).stdout;
    for name in ["first", "second"] {
        let row = list.lines().find(|line| line.contains(name)).unwrap();
        assert!(row.contains("mainstem ") && row.ends_with("alive"), "{list}");
    }
    let asked = at("nodes drain first", &url);
    assert_eq!((asked.code, &*asked.stdout), (Some(0), "asked 1 to stop\n"), "{asked:?}");
    let done = first.done();
    assert!(done.code == Some(0) && done.stderr.contains("an operator asks this node to stop"), "{done:?}");
    let list = at("nodes list --output json", &url).stdout;
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let state = |name: &str| {
        let nodes = list.as_array().unwrap().iter();
        nodes.filter(|node| node["name"] == name).map(|node| node["state"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((state("first"), state("second")), (vec!["ended".into()], vec!["alive".into()]));
    assert_eq!(mainstem("health").arg(second_at.trim()).run().code, Some(0));
    second.signal("TERM");
    assert_eq!(second.done().code, Some(0));
}

#[test]
fn what_is_no_database_is_refused_and_no_password_is_shown() {
    let database = Postgres::start();
    let stranger = database.url().replace("postgres@", "stranger:pass-word@");
    let closed = "postgres://stranger:pass-word@127.0.0.1:9/x?sslmode=disable".to_owned();
    for command in ["migrate", "nodes list", "nodes drain x", "sessions list", "tasks list"] {
        let mut rows = vec![(&stranger, "role \"stranger\" does not exist"), (&closed, "Connection refused")];
        let (file, bad) = ("x.db".to_owned(), "postgres://f:pass-word@db:port/x".to_owned());
        if !command.ends_with("s list") || command == "nodes list" {
            rows.push((&file, "a database is named as postgres://user@host/name"));
        }
        rows.push((&bad, "the URL of the database is not valid"));
        for (url, expected) in rows {
            let done = at(command, url);
            assert!(done.code != Some(0) && done.stderr.contains(expected), "{command} {url}: {done:?}");
            assert!(!done.stderr.contains("pass-word"), "{command}: {done:?}");
        }
    }
    let empty = at("nodes list", &database.url());
    assert!(empty.code == Some(1) && empty.stderr.contains("it has no tables of Mainstem"), "{empty:?}");
}

#[test]
fn a_role_that_may_only_read_lists_and_shows_and_is_no_node() {
    let database = Postgres::start();
    let url = database.url();
    let reader = url.replace("postgres@", "reader@");
    database.sql("CREATE ROLE reader LOGIN");
    let empty = at("sessions list", &reader);
    assert!(empty.code == Some(3) && empty.stderr.contains("it has no tables of Mainstem"), "{empty:?}");
    let doctor = at("doctor -m demo", &url);
    assert!(
        doctor.code == Some(3) && doctor.stdout.contains("`mainstem migrate --journal postgres://"),
        "{doctor:?}"
    );
    assert_eq!(at("migrate", &url).code, Some(0));
    let doctor = |url: &str| at("doctor -m demo", url);
    let stranger = doctor(&url.replace("postgres@", "stranger:pass-word@"));
    let why = "role \"stranger\" does not exist";
    assert!(stranger.code == Some(3) && stranger.stdout.contains(why), "{stranger:?}");
    assert!(!stranger.stdout.contains("pass-word"), "{stranger:?}");
    let refused = at("sessions list", &reader);
    assert!(refused.code == Some(3) && refused.stderr.contains("permission denied"), "{refused:?}");
    database.sql(
        "GRANT USAGE ON SCHEMA mainstem TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA mainstem TO reader",
    );
    let model = Server::start(|_| vec![Step::Text("Hello.")]);
    let run = mainstem("run -m openai:m --progress quiet --session s Hi --journal").arg(&url);
    let run = run.env("OPENAI_BASE_URL", &model.url()).env("OPENAI_API_KEY", "sk-secret-123456").run();
    assert_eq!(run.code, Some(0), "{run:?}");
    let nodes = database.sql("SELECT count(*) FROM mainstem.nodes");
    for (url, expected) in [(&url, "0 nodes alive\n"), (&reader, "this role may read it, and not serve\n")] {
        let done = doctor(url);
        assert!(done.code == Some(0) && done.stdout.contains(expected), "{done:?}");
    }
    for (command, expected) in [
        ("sessions list", "s "),
        ("sessions show s", "main"),
        ("sessions export s", "AGENT_START"),
        ("replay s", ""),
        ("tasks list", ""),
        ("jobs list", ""),
        ("nodes list", "ended"),
    ] {
        let done = at(command, &reader);
        assert!(done.code == Some(0) && done.stdout.contains(expected), "{command}: {done:?}");
    }
    assert_eq!(database.sql("SELECT count(*) FROM mainstem.nodes"), nodes, "readers are no nodes");
    for command in ["sessions rm s", "jobs add later --in 1h", "nodes drain 1"] {
        let done = at(command, &reader);
        assert!(done.code != Some(0) && done.stderr.contains("permission denied"), "{command}: {done:?}");
    }
}
