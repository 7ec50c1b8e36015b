//! Pictures of the terminal, in `docs/pictures`: each scene in three sizes, dark and light.
//!
//! A test draws its scene and compares it with the picture in the tree, except for times and
//! spinners. `cargo xtask pictures` writes the pictures instead.

mod svg;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use regex::Regex;
use serde_json::json;

use crate::{
    server::{Server, Step},
    support::{Cli, Running, demo, mainstem},
    terminal::{Terminal, on},
};

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (40, 12)];

/// If this variable is set, the pictures are written.
const WRITE: &str = "MAINSTEM_PICTURES";

/// Draws a scene in all sizes. `play` returns once the screen has what the picture shows.
fn check(name: &str, play: impl Fn(&Terminal) -> Scene) {
    let scenes = SIZES.map(|(columns, rows)| {
        let terminal = Terminal::sized(columns, rows);
        let scene = play(&terminal);
        // The frame after the one with the text.
        std::thread::sleep(Duration::from_millis(300));
        let cells = terminal.cells();
        drop(scene);
        (format!("{name}-{columns}x{rows}"), cells)
    });
    for (name, cells) in scenes {
        for scheme in svg::SCHEMES {
            compare(&format!("{name}-{}.svg", scheme.name), &svg::picture(&cells, &scheme));
        }
    }
}

/// Writes the demo as a film with two frames a second, or checks that the film has the reply.
#[test]
fn the_demo() {
    if std::env::var_os(WRITE).is_none() {
        let reply = demo("--quiet").run().stdout;
        let first = reply.lines().next().unwrap();
        for scheme in svg::SCHEMES {
            let film = std::fs::read_to_string(folder().join(format!("demo-{}.svg", scheme.name))).unwrap();
            assert!(film.contains(first), "the film does not end with {first:?}; `cargo xtask pictures`");
        }
        return;
    }
    let terminal = Terminal::sized(80, 18);
    let mut running = on(&terminal, mainstem("run -m demo").env("TERM", "xterm-256color"));
    let mut frames = Vec::new();
    while running.child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(500));
        frames.push(terminal.cells());
    }
    for scheme in svg::SCHEMES {
        let path = folder().join(format!("demo-{}.svg", scheme.name));
        std::fs::write(path, svg::film(&frames, Duration::from_millis(500), &scheme)).unwrap();
    }
}

/// The processes behind a screen.
type Scene = (Running, Option<Server>);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures")
}

fn compare(name: &str, picture: &str) {
    let path = folder().join(name);
    if std::env::var_os(WRITE).is_some() {
        return std::fs::write(path, picture).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    let [stored, drawn] = [&*stored, picture].map(without_times);
    let differs = stored.lines().zip(drawn.lines()).find(|(stored, drawn)| stored != drawn);
    assert!(
        stored == drawn,
        "docs/pictures/{name} shows another screen; `cargo xtask pictures` draws it anew\n{differs:#?}"
    );
}

/// Masks what differs from one run to the next, with the spaces before it.
fn without_times(svg: &str) -> String {
    let times = Regex::new(r" *(\d+\.\d s|\d+\.\ds|\d+ ms|\d+ms|\d\d:\d\d(:\d\d)?)|[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]").unwrap();
    times.replace_all(svg, "…").into_owned()
}

/// A review: one child has ended, one is in the middle of its text, one waits for a child.
fn reviewing() -> Server {
    Server::start(|request| {
        let spawn = |agent: &str, label: &str, task: &str| {
            ("agent_spawn", json!({ "agent_id": agent, "label": label, "task": task }))
        };
        match task(request) {
            "Is it correct?" => vec![Step::Text("src/cart.rs:14: two discounts of 60 % exceed the total.")],
            "Is it secure?" => {
                vec![Step::Text("src/cart.rs:18: an empty code is accepted, since"), Step::Hang]
            }
            "Is it tested?" => vec![Step::Call(vec![spawn("runner", "", "Run the tests")])],
            "Run the tests" => vec![Step::Text("11 of 12 tests have passed"), Step::Hang],
            _ => vec![Step::Call(vec![
                spawn("reviewer", "correctness", "Is it correct?"),
                spawn("reviewer", "security", "Is it secure?"),
                spawn("tester", "", "Is it tested?"),
            ])],
        }
    })
}

/// Returns the task of the agent that sends a request.
fn task(request: &serde_json::Value) -> &str {
    let messages = request["messages"].as_array().unwrap();
    let user = messages.iter().find(|message| message["role"] == "user").unwrap();
    user["content"].as_str().unwrap()
}

/// A command line in a folder with agents, with their model at a server.
fn at(server: &Server, line: &str) -> Cli {
    let agent = |what: &str| format!("---\ndescription: {what}\ntools: [agent_spawn]\n---\nBe brief.\n");
    mainstem(line)
        .env("TERM", "xterm-256color")
        .env("OPENAI_BASE_URL", &server.url())
        .file("subagents/reviewer.md", &agent("Reviews"))
        .file("subagents/tester.md", &agent("Tests"))
        .file("subagents/runner.md", &agent("Runs commands"))
}

#[test]
fn a_run() {
    check("run", |terminal| {
        let server = reviewing();
        let cli = at(&server, "run -m openai:gpt-4o-mini").arg("Review the change to the cart");
        let running = on(terminal, cli.stdin(terminal.line()));
        server.until_hanging(2);
        (running, Some(server))
    });
}

#[test]
fn a_question() {
    check("approval", |terminal| {
        let server = Server::start(|_| {
            let (old, new) = ("    one()", "    one() + two()");
            vec![Step::Call(vec![("edit_file", json!({ "path": "cart.rs", "old": old, "new": new }))])]
        });
        let cli = at(&server, "run -m openai:gpt-4o-mini").arg("Add the second amount");
        let cli = cli.file("cart.rs", "fn total() -> u32 {\n    one()\n}\n");
        let running = on(terminal, cli.stdin(terminal.line()));
        terminal.until("> ");
        (running, Some(server))
    });
}

const ANSWER: &str = "\
## Verdict

**Don't merge.** `redeem` accepts an empty code:

```rust
shop.find(\"\").is_some()
```

| file | line | what |
|---|---|---|
| cart.rs | 14 | the total panics |
| cart.rs | 18 | an empty code |
";

#[test]
fn a_chat() {
    check("chat", |terminal| {
        let server = Server::start(|_| vec![Step::Text(ANSWER)]);
        let cli = at(&server, "chat -m openai:gpt-4o-mini --session cart");
        let running = on(terminal, cli.stdin(terminal.line()));
        terminal.until("> ");
        terminal.type_in("Review the cart\r");
        terminal.until("an empty code");
        terminal.type_in("And what does @ca");
        terminal.until("And what does @ca");
        (running, Some(server))
    });
}

#[test]
fn a_record_that_is_watched() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("demo.ndjson");
    assert_eq!(demo("--quiet --record").arg(&file).run().code, Some(0));
    check("watch", |terminal| {
        let cli = mainstem("watch demo.ndjson").env("TERM", "xterm-256color").within(dir.path());
        let running = on(terminal, cli.stdin(terminal.line()));
        terminal.until("end");
        terminal.type_in("\u{1b}[B\u{1b}[B");
        terminal.until("src/cart.rs:18");
        // A narrow terminal shows the tree or the transcript.
        if terminal.cells().size().1.get() < 60 {
            terminal.type_in("\t");
        }
        (running, None)
    });
}
