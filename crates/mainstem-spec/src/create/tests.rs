//! Files that come into being whole, or not at all.

use super::*;

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn nothing_but_the_file_is_left_and_nothing_is_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let agents = dir.path().join("deep/subagents");
    assert_eq!(create_file(&agents, "a-1_b", "one").unwrap(), agents.join("a-1_b.md"));
    let again = create_file(&agents, "a-1_b", "two").unwrap_err();
    assert!(matches!(again, CreateError::Exists { .. }), "{again}");
    assert_eq!(fs::read_to_string(agents.join("a-1_b.md")).unwrap(), "one");
    for id in ["", "A", "-a", "a/b", "../a", "a.b", "ä"] {
        assert!(matches!(create_file(&agents, id, "x"), Err(CreateError::Id(_))), "{id}");
    }
    assert_eq!(names(&agents), ["a-1_b.md"]);
}

/// Of many that write one file at once, one does.
#[test]
fn one_writer_wins() {
    let dir = tempfile::tempdir().unwrap();
    let wins: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|n: i32| {
                scope.spawn({
                    let dir = dir.path();
                    move || create_file(dir, "a", &n.to_string()).ok().map(|_| n)
                })
            })
            .collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
    });
    let [winner] = wins[..] else { panic!("{wins:?}") };
    assert_eq!(fs::read_to_string(dir.path().join("a.md")).unwrap(), winner.to_string());
    assert_eq!(names(dir.path()), ["a.md"]);
}

#[cfg(unix)]
#[test]
fn a_link_counts_as_a_file() {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("elsewhere", dir.path().join("a.md")).unwrap();
    assert!(matches!(create_file(dir.path(), "a", "x"), Err(CreateError::Exists { .. })));
    assert_eq!(names(dir.path()), ["a.md"]);
}
