//! Connections with TLS and a password.

use mainstem_journal::Journal;
use mainstem_postgres::{Node, Settings};
use mainstem_testing::{
    Postgres,
    journal::{emit_run, open_log, read_all},
};

const PASSWORD: &str = "it's p@ss:word/1";

/// Why a node can't join, with the causes.
async fn refused(settings: Settings) -> String {
    let error = Node::join(settings).await.unwrap_err();
    let mut causes = vec![error.to_string()];
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(&error);
    while let Some(next) = cause {
        causes.push(next.to_string());
        cause = next.source();
    }
    causes.join(": ")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_joins_with_tls_and_its_password() {
    let server = Postgres::start();
    let authority = server.secure("fleet", &PASSWORD.replace('\'', "''"));
    server.sql("GRANT ALL ON DATABASE postgres TO fleet");
    let settings = |host: &str, parameters: &str| {
        let url = format!("postgres://fleet@{host}:{}/postgres?{parameters}", server.port());
        Settings::parse(&url).unwrap().with_password(PASSWORD)
    };
    let trusted = format!("sslmode=require&sslrootcert={}", authority.display());

    // Requests, the writer and the lease have connections of their own.
    let node = Node::join(settings("localhost", &trusted)).await.unwrap();
    let log = open_log(&node.journal(), "s").await;
    emit_run(&log, "run", 1);
    node.journal().flush().await.unwrap();
    assert!(!read_all(&node.journal(), "s").await.is_empty());
    let plain = server.sql(
        "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'fleet' AND NOT ssl",
    );
    let encrypted = server.sql(
        "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'fleet' AND ssl",
    );
    assert_eq!(plain, "0");
    assert!(encrypted.parse::<usize>().unwrap() >= 3, "{encrypted}");

    let missing = authority.with_file_name("none.pem");
    let empty = authority.with_file_name("empty.pem");
    std::fs::write(&empty, "").unwrap();
    let with_roots = |file: &std::path::Path| format!("sslmode=require&sslrootcert={}", file.display());
    for (settings, why) in [
        (settings("localhost", &trusted).with_password("another"), "password authentication failed"),
        (settings("localhost", "sslmode=disable"), "no encryption"),
        // Its authority is not one of the system's.
        (settings("localhost", "sslmode=require"), "certificate"),
        // The certificate is for another name.
        (settings("127.0.0.1", &trusted), "certificate"),
        (settings("localhost", &with_roots(&missing)), "none.pem: "),
        (settings("localhost", &with_roots(&empty)), "empty.pem: it has no certificate"),
    ] {
        let error = refused(settings).await;
        assert!(error.contains(why) && !error.contains(PASSWORD), "{error}, not: {why}");
    }
}
