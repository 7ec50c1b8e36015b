//! What counts as a change.

use std::{fs::File, time::Duration};

use tempfile::TempDir;

use super::*;

struct Rig {
    dir: TempDir,
    watch: Watch,
}

impl Rig {
    fn new(names: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("subagents")).unwrap();
        let mut rig = Self { watch: Watch::new([dir.path()]), dir };
        names.iter().for_each(|name| rig.write(name, "text"));
        rig.watch = Watch::new([rig.path("subagents"), rig.path("other")]);
        assert!(!rig.watch.changed());
        rig
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Whether it is seen; and once only.
    fn sees(&mut self) -> bool {
        let seen = self.watch.changed();
        assert!(!self.watch.changed());
        seen
    }

    /// Another time of change than any real one; the inode's own time can't be set.
    fn touch(&self, name: &str, seconds: u64) {
        let file = File::options().append(true).open(self.path(name)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
    }
}

#[test]
fn files_that_come_and_go_are_seen() {
    let mut rig = Rig::new(&["subagents/a.md"]);
    rig.write("subagents/b.md", "");
    assert!(rig.sees());
    fs::remove_file(rig.path("subagents/a.md")).unwrap();
    assert!(rig.sees());
    fs::rename(rig.path("subagents/b.md"), rig.path("subagents/c.md")).unwrap();
    assert!(rig.sees());
}

#[test]
fn a_change_in_place_is_seen_whatever_its_size() {
    let mut rig = Rig::new(&["subagents/a.md"]);
    rig.write("subagents/a.md", "longer text");
    assert!(rig.sees());
    rig.write("subagents/a.md", "LONGER TEXT");
    rig.touch("subagents/a.md", 1);
    assert!(rig.sees());
    rig.touch("subagents/a.md", 2);
    assert!(rig.sees());
}

#[cfg(unix)]
#[test]
fn a_replacement_is_seen_even_with_the_same_size_and_time() {
    let mut rig = Rig::new(&["subagents/a.md", "new"]);
    rig.touch("subagents/a.md", 1);
    assert!(rig.sees());
    rig.touch("new", 1);
    fs::rename(rig.path("new"), rig.path("subagents/a.md")).unwrap();
    assert!(rig.sees());
}

#[test]
fn a_directory_that_comes_and_goes_is_seen() {
    let mut rig = Rig::new(&[]);
    fs::create_dir(rig.path("other")).unwrap();
    assert!(rig.sees());
    rig.write("other/a.md", "");
    assert!(rig.sees());
    fs::remove_dir_all(rig.path("other")).unwrap();
    assert!(rig.sees());
    rig.write("other", "a file");
    assert!(rig.sees());
}

#[test]
fn other_files_are_not_looked_at() {
    let mut rig = Rig::new(&["subagents/a.md"]);
    rig.write("subagents/.a.md.swp", "");
    rig.write("subagents/.hidden.md", "");
    rig.write("subagents/notes.txt", "");
    rig.write("beside.md", "");
    assert!(!rig.sees());
}

#[cfg(unix)]
#[test]
fn a_link_is_what_it_leads_to() {
    let mut rig = Rig::new(&["target", "next"]);
    std::os::unix::fs::symlink(rig.path("target"), rig.path("subagents/a.md")).unwrap();
    assert!(rig.sees());
    rig.write("target", "other text");
    assert!(rig.sees());
    fs::remove_file(rig.path("target")).unwrap();
    assert!(rig.sees());
}

#[test]
fn skills_and_prompts_are_looked_at_too() {
    let mut rig = Rig::new(&[]);
    let write = |rig: &Rig, name: &str, text: &str| {
        fs::create_dir_all(rig.path(name).parent().unwrap()).unwrap();
        rig.write(name, text);
    };
    rig.watch = Watch::new([rig.path("subagents")]).with_skills([rig.path("skills")]);
    write(&rig, "skills/pdf/SKILL.md", "text");
    assert!(rig.sees());
    write(&rig, "skills/pdf/SKILL.md", "longer text");
    assert!(rig.sees());
    write(&rig, "skills/pdf/forms.md", "beside it");
    assert!(rig.sees(), "the files of a folder are named");
    write(&rig, "team/AGENTS.md", "text");
    assert!(!rig.sees());
    rig.watch.look_at([rig.path("team/AGENTS.md")]);
    assert!(!rig.sees());
    write(&rig, "team/AGENTS.md", "longer text");
    assert!(rig.sees());
    rig.watch.look_at([rig.path("other.md")]);
    write(&rig, "team/AGENTS.md", "still longer text");
    assert!(!rig.sees(), "only the files of the last call");
}
