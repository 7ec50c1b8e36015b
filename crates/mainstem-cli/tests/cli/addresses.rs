//! What stands in an address besides the place: no password and no query of it is shown, whatever
//! goes wrong.

use crate::{
    server::{Server, Step},
    support::{Cli, Running, mainstem},
};

const PASSWORD: &str = "hunter2-secret";
const QUERY: &str = "topsecret-value";

/// The base64 of `me:` and the password.
const ENCODED: &str = "bWU6aHVudGVyMi1zZWNyZXQ=";

/// Both in an address at this host.
fn address(host: &str) -> String {
    format!("http://me:{PASSWORD}@{host}/v1?key={QUERY}")
}

fn check(what: &str, cli: Cli) {
    checked(what, cli.start());
}

/// Waits for the end of a command.
fn checked(what: &str, running: Running) {
    let done = running.done();
    assert!(!done.stderr.is_empty() || !done.stdout.is_empty(), "{what}: {done:?}");
    for secret in [PASSWORD, QUERY, ENCODED] {
        assert!(!done.stdout.contains(secret) && !done.stderr.contains(secret), "{what}: {done:?}");
    }
}

/// Starts a run, and a look at the model. They wait between their retries, so all go on at once.
fn start_model(what: &str, with: impl Fn(Cli) -> Cli) -> Vec<(String, Running)> {
    let lines = [
        "run -m openai:m --output ndjson Hi",
        "run -m openai:m --output json Hi",
        "doctor",
        "doctor --online",
        "models",
    ];
    let start = |line: &str| {
        let cli =
            with(mainstem(line).env("OPENAI_API_KEY", "sk-secret-123456").env("MAINSTEM_MODEL", "openai:m"));
        (format!("{what}: {line}"), cli.env("MAINSTEM_LOG", "trace").start())
    };
    lines.map(start).into()
}

#[test]
fn of_a_model() {
    let url =
        |server: &Server| address(server.url().strip_prefix("http://").unwrap().strip_suffix("/v1").unwrap());
    let echo = format!("nothing at /v1/chat/completions?key={QUERY} for me:{PASSWORD} or {ENCODED}");
    let echoes = Server::start(move |_| vec![Step::Refuse("404 Not Found", "", echo.clone())]);
    let moved = Server::start(|_| {
        let header = "location: http://me:hunter2-secret@127.0.0.1:1/?key=topsecret-value\r\n";
        vec![Step::Refuse("302 Found", header, String::new())]
    });
    let at = |what: &str, url: &str| start_model(what, |cli| cli.env("OPENAI_BASE_URL", url));
    let mut started = at("echoed", &url(&echoes));
    started.extend(at("redirected", &url(&moved)));
    started.extend(at("unreachable", &address("127.0.0.1:1")));
    for wrong in ["127.0.0.1:99999", "host:port", "127.0.0.1/x@y"] {
        started.extend(at(wrong, &address(wrong)));
    }
    started.extend(start_model("through a proxy", |cli| {
        let cli = cli.env("OPENAI_BASE_URL", "http://model.invalid/v1");
        cli.env("HTTP_PROXY", &address("127.0.0.1:1")).env("http_proxy", &address("127.0.0.1:1"))
    }));
    for (what, running) in started {
        checked(&what, running);
    }
}

#[test]
fn of_an_mcp_server() {
    let model = Server::start(|_| vec![Step::Text("Yes.")]);
    for host in ["127.0.0.1:1", "host:port"] {
        for line in ["run -m openai:m --output ndjson Hi", "tools", "doctor", "doctor --online"] {
            let config = "[mcp.there]\nurl = \"${THERE}\"\n[mcp.plain]\nurl = \"http://127.0.0.1:1/?key=topsecret-value\"\n";
            let cli =
                mainstem(line).file(".config/mainstem/config.toml", config).env("THERE", &address(host));
            let cli = cli.env("OPENAI_BASE_URL", &model.url()).env("OPENAI_API_KEY", "sk-secret-123456");
            check(&format!("{host}: {line}"), cli);
        }
    }
}

#[test]
fn of_an_mcp_server_in_the_log_of_a_server() {
    let model = Server::start(|_| vec![Step::Text("Yes.")]);
    let config = "[mcp.there]\nurl = \"${THERE}\"\n";
    for filter in ["warn,mainstem=info", "trace"] {
        let cli = mainstem("serve -m openai:m --bind 127.0.0.1:0 --token-file tokens")
            .file("tokens", "the-token-of-the-test\n");
        let cli = cli.file(".config/mainstem/config.toml", config).env("THERE", &address("127.0.0.1:1"));
        let cli = cli.env("OPENAI_BASE_URL", &model.url()).env("OPENAI_API_KEY", "sk-secret-123456");
        let mut serve = cli.env("MAINSTEM_LOG", filter).start();
        let url = serve.line().trim().to_owned();
        let ask = mainstem("run Hi --server").arg(&url).env("MAINSTEM_TOKEN", "the-token-of-the-test");
        assert_eq!(ask.run().stdout, "Yes.\n");
        serve.signal("TERM");
        let log = serve.done().stderr;
        assert!(log.contains("the MCP server"), "{log}");
        assert!(!log.contains("topsecret"), "{filter}: {log}");
    }
}

#[test]
fn of_a_server_and_of_a_collector() {
    for host in ["127.0.0.1:1", "host:port"] {
        for line in ["sessions list --server", "tasks list --server", "run --progress plain Hi --server"] {
            check(line, mainstem(line).arg(address(host)));
        }
        let run = mainstem("run -m demo --demo-pace 0 --progress plain Hi")
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", &address(host));
        check("collector", run);
    }
}
