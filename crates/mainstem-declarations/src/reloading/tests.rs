//! A builder of names, over real files.

use std::fs;

use mainstem_spec::Sources;
use tempfile::TempDir;

use super::*;

/// Builds the ids of all agents; an agent called `fails` can't be built.
struct Ids;

impl Build for Ids {
    type Output = Vec<String>;
    type Error = DeclarationError;

    fn build(
        &self,
        declarations: &Declarations,
        last: Option<&Vec<String>>,
    ) -> Result<(Vec<String>, Vec<Diagnostic>), DeclarationError> {
        let ids: Vec<_> = declarations.specs().iter().map(|spec| spec.id.clone()).collect();
        if ids.iter().any(|id| id == "fails") {
            return Err(DeclarationError::Spec { id: "fails".to_owned(), errors: Vec::new() });
        }
        let last = format!("{} before", last.map_or(0, Vec::len));
        Ok((ids, vec![Diagnostic::warning(Code::ToolReplaced, last)]))
    }

    fn lead(
        &self,
        declarations: &Declarations,
        current: &Vec<String>,
        lead: &Lead,
    ) -> Result<Option<Vec<String>>, DeclarationError> {
        let agent = lead.agent.as_deref().unwrap_or_default();
        if current.first().is_some_and(|id| id == agent) {
            return Ok(None);
        }
        if declarations.specs().get(agent).is_none() {
            return Err(DeclarationError::Spec { id: agent.to_owned(), errors: Vec::new() });
        }
        let others = current.iter().filter(|id| *id != agent);
        Ok(Some([agent.to_owned()].into_iter().chain(others.cloned()).collect()))
    }
}

fn by(agent: &str) -> Lead {
    Lead { agent: Some(agent.to_owned()), model: None }
}

fn write(dir: &TempDir, id: &str, description: &str) {
    let dir = dir.path().join("subagents");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join(format!("{id}.md")), format!("---\ndescription: {description}\n---\n")).unwrap();
}

fn open(dir: &TempDir) -> Reloading<Ids> {
    Reloading::open(Inputs::new(Sources::of_workspace(dir.path())), Ids).unwrap()
}

fn lines(reloading: &Reloading<Ids>) -> Vec<String> {
    reloading.diagnostics().iter().map(ToString::to_string).collect()
}

#[test]
fn the_last_value_stays_if_nothing_can_be_built() {
    let check = |built: Result<(u8, Vec<Diagnostic>), &str>, expected: (u8, &[&str])| {
        let found = vec![Diagnostic::warning(Code::Duplicate, "twice")];
        let (value, found) = in_effect(Again { found, built }, Arc::new(1));
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            (*value, &*found),
            (expected.0, &*expected.1.iter().map(|&line| line.to_owned()).collect::<Vec<_>>())
        );
    };
    check(Ok((2, Vec::new())), (2, &["warning: twice"]));
    let more = vec![Diagnostic::error(Code::Server, "no server")];
    check(Ok((2, more)), (2, &["warning: twice", "error: no server"]));
    let kept = "error: bad pattern; all agents stay in effect as they were before";
    check(Err("bad pattern"), (1, &["warning: twice", kept]));
}

#[tokio::test]
async fn what_has_changed_is_read_before_the_next_use() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir, "critic", "d");
    let reloading = open(&dir);
    let first = reloading.current();
    assert!(Arc::ptr_eq(&first, &reloading.refreshed().await));
    write(&dir, "poet", "d");
    assert!(Arc::ptr_eq(&first, &reloading.current()));
    assert_eq!(*reloading.refreshed().await, ["critic", "poet"]);
    assert_eq!(lines(&reloading), ["warning: 1 before"]);
    write(&dir, "fails", "d");
    assert_eq!(*reloading.refreshed().await, ["critic", "poet"]);
    assert_eq!(reloading.diagnostics()[0].code(), Code::NotReloaded);
    fs::remove_file(dir.path().join("subagents/fails.md")).unwrap();
    reloading.refreshed().await;
    assert_eq!(lines(&reloading), ["warning: 2 before"]);
}

#[tokio::test]
async fn a_leader_is_chosen_from_what_there_is_now_and_built_once() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir, "critic", "d");
    let reloading = open(&dir);
    assert!(reloading.led_by(by("poet")).await.is_err());
    write(&dir, "poet", "d");
    let led = reloading.led_by(by("poet")).await.unwrap();
    assert_eq!(*led, ["poet", "critic"]);
    assert!(Arc::ptr_eq(&led, &reloading.led_by(by("poet")).await.unwrap()));
    assert_eq!(*reloading.current(), ["critic", "poet"]);
    assert!(Arc::ptr_eq(&reloading.current(), &reloading.led_by(by("critic")).await.unwrap()));
    write(&dir, "editor", "d");
    assert_eq!(reloading.led_by(by("poet")).await.unwrap().len(), 3);
}

#[test]
fn the_first_value_must_be_built() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir, "fails", "d");
    assert!(Reloading::open(Inputs::new(Sources::of_workspace(dir.path())), Ids).is_err());
}
