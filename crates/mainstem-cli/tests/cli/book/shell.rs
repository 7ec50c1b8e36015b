//! The commands of the book's pages, each page as one script, with what it needs in its folder.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use mainstem_testing::Postgres;

use crate::{
    examples::copy,
    server::{Server, Step},
};

/// A page whose blocks run.
struct Page {
    name: &'static str,
    /// What makes the folder as the page expects it.
    before: &'static str,
    /// What stands in this folder for what the page names.
    words: &'static [(&'static str, &'static str)],
}

/// In place of a project that cargo makes.
const NEW_PROJECT: &str = "mkdir -p fleet/src && touch fleet/Cargo.toml && cd fleet";

const PAGES: [Page; 12] = [
    Page { name: "clients.md", before: "echo secret-of-some-length > tokens", words: &[("7878", "$PORT")] },
    Page {
        name: "cookbook.md",
        before: "repository .; git tag -f v1.2.0; git update-ref refs/remotes/origin/main main
            repository $HERE/project; git -C $HERE/project tag v1.2.0; mkdir -p $HERE/docs/en $HERE/service/logs",
        words: &[
            ("/path/to/project", "$HERE/project"),
            ("/path/to/service", "$HERE/project"),
            ("/path/to/docs", "$HERE/docs"),
            ("/srv/service", "$HERE/service"),
            // It changes the machine.
            ("crontab -e", ": crontab"),
            ("{{#include ../../examples/triage/nightly.sh}}", "$HERE/service/nightly.sh"),
        ],
    },
    // With `RUN_SLOW_TESTS`, cargo does all that the page says.
    Page {
        name: "getting-started.md",
        before: "echo '# Fleet' > README.md",
        words: &[("cargo new --lib fleet && cd fleet", NEW_PROJECT), ("cargo ", ": cargo ")],
    },
    Page { name: "models.md", before: "cp $PICTURE plan.png; echo '# Notes' > notes.md", words: &[] },
    Page {
        name: "nodes.md",
        before: "echo secret-of-some-length > tokens; echo password > password",
        words: &[
            // As the page says further down.
            ("agents\nmainstem serve", "agents\npsql -q -f $HERE/sql postgres://owner@db.example/agents\nmainstem serve"),
            ("/run/secrets/postgres", "$HERE/password"),
            ("db.example/agents", "$DATABASE/agents"),
            ("other.example/agents", "$DATABASE/other"),
            ("/srv/agents", "$HERE/agents"),
            ("host-3", "$(uname -n)"),
            // Its other store is a bucket, which `session_files.rs` has.
            ("s3://bucket/agents", "$HERE/agents"),
        ],
    },
    // `cargo xtask deploy` does the steps of the image.
    Page { name: "operating.md", before: "", words: &[("docker ", ": docker ")] },
    Page { name: "page.md", before: "", words: &[] },
    Page {
        name: "permissions.md",
        before: "echo 'shell = true' > mainstem.toml",
        words: &[(" DIR", " ."), ("--trust …", "--trust Hello")],
    },
    // Another vendor's program.
    Page { name: "protocols.md", before: "", words: &[("claude ", ": claude ")] },
    Page {
        name: "serving.md",
        before: "export MAINSTEM_TOKEN=secret-of-some-length; echo $MAINSTEM_TOKEN > tokens
            mainstem serve --journal fleet.db --token-file tokens
            mainstem run --session my-session --server http://127.0.0.1:$PORT Hello",
        words: &[("7878", "$PORT")],
    },
    Page { name: "sessions.md", before: "", words: &[("mainstem run --session review --resume  ", "fails_with 2 mainstem run --session review --resume  ")] },
    // `tests/it` compiles such a test.
    Page { name: "testing.md", before: "mkdir tests", words: &[("cargo ", ": cargo ")] },
];

/// Servers run until the script ends; what shows a screen gets a terminal, and `q`.
const PRELUDE: &str = r#"
set -euo pipefail
exec < /dev/null
trap 'kill $(cat $HERE/pids) 2> /dev/null || true' EXIT
touch $HERE/pids
repository() {
  git init -q -b main "$1"
  git -C "$1" -c user.name=a -c user.email=a@b commit -q --allow-empty -m "Begin"
}
fails_with() {
  local code=0
  "${@:2}" || code=$?
  test "$code" = "$1"
}
mainstem() {
  case "${1-}" in
    serve)
      if test -e $HERE/server; then kill $(cat $HERE/server) 2> /dev/null || true; sleep 1; fi
      command mainstem "$@" --bind 127.0.0.1:$PORT &
      echo $! | tee $HERE/server >> $HERE/pids
      until command mainstem health http://127.0.0.1:$PORT > /dev/null 2>&1; do kill -0 $!; sleep 0.1; done ;;
    worker) command mainstem "$@" & echo $! >> $HERE/pids; sleep 1; kill -0 $! ;;
    "") printf '/exit\r' | script -qec mainstem /dev/null > screen ;;
    watch) printf q | script -qec "mainstem $*" /dev/null > screen ;;
    attach) command mainstem "$@" --once ;;
    *) command mainstem "$@" ;;
  esac
}
"#;

/// Without a model, as the page of a command that fails has it.
const NO_MODEL: &str = "unset MAINSTEM_MODEL OPENAI_API_KEY OPENAI_BASE_URL";

#[test]
fn commands_of_the_book_run() {
    // A package has no book.
    let Ok(pages) = fs::read_dir(root().join("docs/book/src")) else { return };
    let database = Postgres::start();
    database.sql("CREATE ROLE owner LOGIN; CREATE ROLE fleet LOGIN");
    for name in ["agents", "other"] {
        database.sql(&format!("CREATE DATABASE {name} OWNER owner"));
    }
    for path in pages.map(|page| page.unwrap().path()).filter(|path| path.is_file()) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let page = PAGES.iter().find(|page| page.name == name);
        assert_eq!(
            page.is_some(),
            !commands(&text).is_empty(),
            "{name} is not in the list, or has no commands"
        );
        if let Some(page) = page {
            run(page, &text, false, &database);
        }
    }
}

/// From an empty directory, and with nothing but the page: installed, the first fleet, agents of
/// one's own, and a test of them. What is installed is the latest commit.
#[test]
fn the_first_page_is_all_that_one_needs() {
    if env::var_os("RUN_SLOW_TESTS").is_none() {
        return;
    }
    let text = fs::read_to_string(root().join("docs/book/src/getting-started.md")).unwrap();
    let page = PAGES.iter().find(|page| page.name == "getting-started.md").unwrap();
    run(&Page { words: &[], ..*page }, &text, true, &Postgres::start());
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the commands of each block.
fn commands(page: &str) -> Vec<String> {
    let commands = fenced(page).filter_map(|(language, block)| match language {
        "sh" => Some(block.to_owned()),
        "console" => Some(typed(block)),
        _ => None,
    });
    commands.collect()
}

/// Returns the blocks of a language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let blocks = fenced(page).filter(|(of, _)| *of == language);
    blocks.map(|(_, block)| block.to_owned()).collect()
}

/// Returns the blocks of a page, each with its language.
fn fenced(page: &str) -> impl Iterator<Item = (&str, &str)> {
    page.split("\n```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'))
}

/// Returns the commands of a block that shows what they print.
fn typed(block: &str) -> String {
    let lines: Vec<_> = block.lines().collect();
    let typed = lines.iter().zip(lines.iter().skip(1).chain([&""])).filter_map(|(line, next)| {
        let command = line.strip_prefix("$ ")?;
        Some(match next.strip_prefix("? ") {
            Some(code) => format!("({NO_MODEL}; fails_with {code} {command})"),
            None => command.to_owned(),
        })
    });
    typed.collect::<Vec<_>>().join("\n")
}

#[expect(clippy::print_stderr, reason = "the times of the first page are read")]
fn run(page: &Page, text: &str, is_literal: bool, database: &Postgres) {
    let (commands, sql) = (commands(text), blocks(text, "sql").concat());
    let model = Server::start(|_| vec![Step::Text(r#"{ "merge": true, "faults": [] }"#)]);
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    copy(&root().join("docs/examples"), &here.join("docs/examples"));
    let mut script = format!("{PRELUDE}\n{}\n", page.before);
    for block in &commands {
        let block = page.words.iter().fold(block.clone(), |block, (word, with)| block.replace(word, with));
        // Bash goes on after a command before `&&` that fails.
        let block = block.replace(" && cd ", "\ncd ");
        script += &format!("(\n{block}\n)\necho \"-- $SECONDS s\"\n");
    }
    fs::write(here.join("script"), &script).unwrap();
    fs::write(here.join("sql"), sql).unwrap();
    let programs = match is_literal {
        true => here.join("installed/bin"),
        false => Path::new(env!("CARGO_BIN_EXE_mainstem")).parent().unwrap().to_owned(),
    };
    let path = format!("{}:{}", programs.display(), env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.arg("script").current_dir(here).env_clear().env("PATH", path).env("TERM", "xterm");
    bash.env("HOME", here).env("HERE", here).env("PORT", free_port().to_string());
    bash.env("DATABASE", format!("127.0.0.1:{}", database.port()));
    bash.env("PICTURE", root().join("ui/test/screens/cancelled-dark-390.png"));
    bash.env("OPENAI_BASE_URL", model.url()).env("OPENAI_API_KEY", "sk-of-the-test");
    bash.env("MAINSTEM_MODEL", "openai:gpt-4o-mini");
    if is_literal {
        bash.envs(of_cargo(here));
    }
    let done = bash.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    eprintln!("{}\n{stdout}", page.name);
    assert!(done.status.success(), "{}: {}\n{script}\n{stderr}", page.name, done.status);
}

/// What cargo needs: its own files, and this repository in place of the one that the page names.
fn of_cargo(here: &Path) -> Vec<(&'static str, String)> {
    let home = env::var("HOME").unwrap();
    let own = |name, folder| (name, env::var(name).unwrap_or_else(|_| format!("{home}/{folder}")));
    vec![
        own("CARGO_HOME", ".cargo"),
        own("RUSTUP_HOME", ".rustup"),
        ("CARGO_INSTALL_ROOT", here.join("installed").display().to_string()),
        ("CARGO_NET_GIT_FETCH_WITH_CLI", "true".to_owned()),
        ("GIT_CONFIG_COUNT", "2".to_owned()),
        ("GIT_CONFIG_KEY_0", format!("url.file://{}.insteadOf", root().canonicalize().unwrap().display())),
        ("GIT_CONFIG_VALUE_0", "https://github.com/mainstem-rs/mainstem".to_owned()),
        ("GIT_CONFIG_KEY_1", "safe.directory".to_owned()),
        ("GIT_CONFIG_VALUE_1", "*".to_owned()),
    ]
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
