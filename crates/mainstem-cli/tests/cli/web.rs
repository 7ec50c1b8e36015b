//! A session and a record in a browser, whose place a script takes that notes what it opens.

use std::{os::unix::fs::PermissionsExt, path::Path, time::Duration};

use mainstem::prelude::AgentEvent;

use crate::{
    server::{Server, Step},
    support::{Cli, demo, mainstem},
};

/// Records a run of the session `s`.
fn recorded(journal: &Path) {
    let server = Server::start(|_| vec![Step::Text("Yes.")]);
    let cli = mainstem("run -m openai:m --progress quiet --session s Hi --journal").arg(journal);
    let cli = cli.env("OPENAI_BASE_URL", &server.url()).env("OPENAI_API_KEY", "sk-secret-123456");
    assert_eq!(cli.run().code, Some(0));
}

/// Puts a browser into the path, which writes what it opens to `opened`.
fn with_browser(cli: Cli, dir: &Path) -> Cli {
    let browser = dir.join("xdg-open");
    let script = format!("#!/bin/sh\necho \"$1\" > {0}/part && mv {0}/part {0}/opened\n", dir.display());
    std::fs::write(&browser, script).unwrap();
    std::fs::set_permissions(&browser, PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", dir.display());
    cli.env("PATH", &path).env("TMPDIR", dir.to_str().unwrap())
}

fn opened(dir: &Path) -> String {
    for _ in 0..200 {
        if let Ok(opened) = std::fs::read_to_string(dir.join("opened")) {
            return opened;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("no browser was started")
}

/// The events that a document holds.
fn record(document: &str) -> Vec<AgentEvent> {
    let record = document.split("id=\"record\">").nth(1).unwrap().split("</script>").next().unwrap();
    record.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_file_is_opened_as_a_document_that_only_its_owner_reads() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("demo.ndjson");
    assert_eq!(demo("--progress quiet --record").arg(&file).run().code, Some(0));
    let shown = with_browser(mainstem("watch --web").arg(&file), dir.path()).run();
    assert_eq!((shown.code, &*shown.stderr), (Some(0), ""), "{shown:?}");
    assert_eq!(opened(dir.path()), shown.stdout);
    let path = Path::new(shown.stdout.trim());
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let written = crate::support::events(&std::fs::read_to_string(&file).unwrap());
    let held = record(&std::fs::read_to_string(path).unwrap());
    assert!(held.len() > 20 && held.iter().map(|event| event.seq).eq(written.iter().map(|event| event.seq)));
}

#[test]
fn a_session_is_opened_and_exported_as_it_is_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("j.db");
    recorded(&journal);
    let shown = with_browser(mainstem("watch --web s --journal").arg(&journal), dir.path()).run();
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let exported = mainstem("sessions export s --html --journal").arg(&journal).run();
    let document = std::fs::read_to_string(shown.stdout.trim()).unwrap();
    assert_eq!((exported.code, exported.stdout), (Some(0), document.clone()));
    assert!(record(&document).last().unwrap().is_run_end());
    // Nothing is left of what can't be written.
    let missing = with_browser(mainstem("watch --web t --journal").arg(&journal), dir.path()).run();
    assert_eq!((missing.code, &*missing.stdout), (Some(2), ""), "{missing:?}");
    assert!(missing.stderr.contains("no session of that name"), "{missing:?}");
    let missing = mainstem("sessions export t --html --journal").arg(&journal).run();
    assert_eq!((missing.code, &*missing.stdout), (Some(1), ""), "{missing:?}");
    let broken = dir.path().join("broken.ndjson");
    std::fs::write(&broken, "{}\n{}\n").unwrap();
    let refused = with_browser(mainstem("watch --web").arg(&broken), dir.path()).run();
    assert_eq!((refused.code, &*refused.stdout), (Some(1), ""), "{refused:?}");
    assert!(refused.stderr.contains("broken.ndjson:1:2: not an event"), "{refused:?}");
    std::fs::write(&broken, "").unwrap();
    let empty = with_browser(mainstem("watch --web").arg(&broken), dir.path()).run();
    assert_eq!((empty.code, &*empty.stderr), (Some(1), "error: the record has no events\n"), "{empty:?}");
    let files = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(files.filter(|path| path.extension().is_some_and(|suffix| suffix == "html")).count(), 1);
}

#[test]
fn without_a_browser_the_path_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("j.db");
    recorded(&journal);
    let shown = mainstem("watch --web s --journal").arg(&journal).env("PATH", "/nowhere");
    let shown = shown.env("TMPDIR", dir.path().to_str().unwrap()).run();
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(Path::new(shown.stdout.trim()).exists(), "{shown:?}");
    assert!(shown.stderr.starts_with("no browser could be started"), "{shown:?}");
}
