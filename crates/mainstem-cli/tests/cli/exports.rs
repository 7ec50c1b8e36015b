//! `sessions export --test`: a recorded session as a test.

use mainstem_testing::Recording;

use crate::{
    server::{Server, Step},
    support::mainstem,
};

#[tokio::test(start_paused = true)]
async fn a_session_is_exported_as_a_test_that_passes() {
    let server = Server::start(|_| {
        vec![Step::Text("# Heading\u{202e} \u{200b}"), Step::Text("\"# and more.\u{1b}[31m")]
    });
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("j.db");
    let run =
        mainstem("run -m openai:m --progress quiet --session s --journal").arg(&journal).arg("Say \"#it\".");
    let run = run.env("OPENAI_BASE_URL", &server.url()).env("OPENAI_API_KEY", "sk-secret-123456").run();
    assert_eq!(run.code, Some(0), "{run:?}");

    let exported = mainstem("sessions export s --test --journal").arg(&journal).run();
    assert_eq!((exported.code, &*exported.stderr), (Some(0), ""), "{exported:?}");
    let (code, literal) = exported.stdout.split_once("r#\"\n").unwrap();
    assert!(code.contains("async fn session_s() {"), "{code}");
    let (record, rest) = literal.split_once("\"#").unwrap();
    assert_eq!(rest, ";\n");
    let recording = Recording::parse(record).unwrap();
    recording.check(&recording.harness().build().unwrap()).await;
    // What was said is in it, whatever a terminal would make of it.
    let said = recording.events().iter().rev().find_map(|event| match &event.kind {
        mainstem::event::EventKind::AgentResult { result } => Some(result.text()),
        _ => None,
    });
    assert_eq!(said.as_deref(), Some("# Heading\u{202e} \u{200b}\"# and more.\u{1b}[31m"));

    // The agent of a run that goes on has not done yet what a test is of.
    let held = Server::start(|_| vec![Step::Text("I begin."), Step::Hang]);
    let active = mainstem("run -m openai:m --progress quiet --session a Go --journal").arg(&journal);
    let active = active.env("OPENAI_BASE_URL", &held.url()).env("OPENAI_API_KEY", "sk-secret-123456").start();
    let export = || mainstem("sessions export a --test --journal").arg(&journal).run();
    let refused = (0..200).map(|_| export()).find(|export| export.stderr.contains("is active")).unwrap();
    assert_eq!((refused.code, &*refused.stdout), (Some(1), ""), "{refused:?}");
    drop(active);

    let missing = mainstem("sessions export t --test --journal").arg(&journal).run();
    assert_eq!((missing.code, &*missing.stdout), (Some(1), ""), "{missing:?}");
    let both = mainstem("sessions export s --test --html --journal").arg(&journal).run();
    assert_eq!(both.code, Some(2), "{both:?}");
}
