//! The versions of the tables.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use mainstem_journal::Journal;
use mainstem_postgres::{Error, Node, Settings, migrate};
use mainstem_testing::{
    Postgres,
    journal::{emit_run, open_log},
};
use tokio::time::sleep;
use tokio_postgres::NoTls;

use crate::join;

#[tokio::test]
async fn tables_are_made_once_and_those_of_other_versions_are_refused() {
    let server = Postgres::start();
    let settings = Settings::parse(&server.url()).unwrap();
    let made = join_all((0..8).map(|_| migrate(&settings))).await;
    let made: Vec<_> = made.into_iter().map(|made| made.unwrap().from).collect();
    assert_eq!(made.iter().filter(|from| from.is_none()).count(), 1, "{made:?}");
    // A later version that programs of this one work with, then one that they do not.
    server.sql(
        "UPDATE mainstem.refinery_schema_history SET version = 99 WHERE version = (SELECT max(version) FROM mainstem.refinery_schema_history)",
    );
    Node::join(settings.clone()).await.unwrap();
    server.sql("UPDATE mainstem.about SET value = '99' WHERE name = 'compatible from'");
    let newer = Node::join(settings.clone()).await.unwrap_err();
    assert!(matches!(newer, Error::Newer { version: 99, .. }), "{newer}");
    assert!(newer.to_string().contains("use a later program"), "{newer}");
    let refused = migrate(&settings).await.unwrap_err();
    assert!(refused.to_string().contains("use a later program"), "{refused}");
    server.sql("UPDATE mainstem.refinery_schema_history SET version = 0 WHERE version = 99");
    let older = Node::join(settings).await.unwrap_err();
    assert!(older.to_string().contains("`mainstem migrate`"), "{older}");
}

/// A change waits for the tables, such as behind a backup, in steps: nodes wait for a second at
/// most.
#[tokio::test]
async fn nodes_go_on_while_a_change_waits_for_the_tables() {
    let server = Postgres::start();
    let settings = Settings::parse(&server.url()).unwrap();
    let node = join(&server.url()).await;
    let log = open_log(&node.journal(), "s").await;
    server.sql(
        "ALTER TABLE mainstem.sessions DROP COLUMN cut; DROP INDEX mainstem.tasks_resumable;
        DROP TABLE mainstem.moments; DELETE FROM mainstem.refinery_schema_history WHERE version > 2",
    );
    let (backup, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    let backed_up = async {
        backup.batch_execute("BEGIN; LOCK TABLE mainstem.sessions IN ACCESS SHARE MODE").await.unwrap();
        let sample = async {
            for _ in 0..8 {
                let begun = Instant::now();
                server.sql("SELECT count(*) FROM mainstem.sessions");
                assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
                sleep(Duration::from_millis(500)).await;
            }
        };
        tokio::select! {
            _ = migrate(&settings) => panic!("the tables are in use"),
            () = sample => {}
        }
        let end = async {
            sleep(Duration::from_millis(1_500)).await;
            backup.batch_execute("COMMIT").await.unwrap();
        };
        tokio::join!(migrate(&settings), end).0.unwrap()
    };
    let migrated = tokio::select! {
        migrated = backed_up => migrated,
        _ = connection => panic!("the connection has ended"),
    };
    assert_eq!((migrated.from, migrated.to), (Some(2), 4));
    emit_run(&log, "1", 1);
    assert!(log.until_committed(1).await, "{:?}", log.failure());
}

#[tokio::test(flavor = "multi_thread")]
async fn data_waits_a_day_for_its_session() {
    let server = Postgres::start();
    let node = join(&server.url()).await;
    let (journal, id) = (node.journal(), "a".repeat(64).parse().unwrap());
    let store = async |session: &str| {
        assert!(journal.store_data(&session.parse().unwrap(), &id, b"x".to_vec().into()).await.unwrap());
    };
    let stored =
        async |session: &str| journal.data_size(&session.parse().unwrap(), &id).await.unwrap().is_some();
    for session in ["later", "never"] {
        store(session).await;
    }
    emit_run(&open_log(&journal, "later").await, "later", 1);
    journal.flush().await.unwrap();
    server.sql("UPDATE mainstem.data SET waits_since = waits_since - interval '25 hours'");
    store("another").await;
    assert!(stored("later").await && stored("another").await && !stored("never").await);
}

#[tokio::test]
async fn a_database_that_can_t_be_used_says_why() {
    let server = Postgres::start();
    server.sql("CREATE ROLE guest LOGIN");
    let url = server.url();
    for (url, expected) in [
        (url.replace("postgres@", "stranger@"), "role \"stranger\" does not exist"),
        (url.replace("/postgres?", "/other?"), "database \"other\" does not exist"),
        (url.replace("postgres@", "guest@"), "permission denied"),
        (url.replace("disable", "require"), "server does not support TLS"),
        ("postgres://x:secret@127.0.0.1:1/x?sslmode=disable".to_owned(), "Connection refused"),
    ] {
        let error = Node::join(Settings::parse(&url).unwrap()).await.unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains("secret"), "{error}");
    }
}
