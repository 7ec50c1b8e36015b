//! Parsing of `/proc`.

use super::*;

#[test]
fn a_name_may_look_like_anything() {
    let stat = "42 (a) R 1 (b) S 7 8 9 0 -1 0 1 2 3 4 100 50 30 20 20 0 1 0 5 6 7";
    let is = Process::parse(stat, 100).unwrap();
    let (cpu, cpu_of_children) = (Duration::from_millis(1500), Duration::from_millis(500));
    assert_eq!(is, Process { pid: 42, parent: 7, group: 8, is_running: true, cpu, cpu_of_children });
    assert!(!Process::parse(&stat.replace(") S", ") Z"), 100).unwrap().is_running);
    assert_eq!(Process::parse("42 (a) R 1", 100), None);
    assert_eq!(Process::parse("", 100), None);
}

#[test]
fn only_a_positive_number_is_a_group() {
    let check = |group: &str, is: Option<i32>| {
        let stat = format!("42 (a) Z 7 {group} 8 9 0 -1 0 1 2 3 4 100 50 30 20 20 0 1 0 5 6 7");
        assert_eq!(Process::parse(&stat, 100).unwrap().group().map(Pid::as_raw_pid), is);
    };
    check("8", Some(8));
    check("0", None);
    // So the kernel shows a process that is being reaped.
    check("-1", None);
}

#[test]
fn this_process_has_memory_and_its_child_is_found() {
    let pid = rustix::process::getpid().as_raw_pid();
    assert!(memory(pid) > 1 << 16, "{}", memory(pid));
    let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let found = descendants().into_iter().find(|process| process.pid == child.id().cast_signed());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(found.map(|found| (found.parent, found.is_running)), Some((pid, true)));
}
