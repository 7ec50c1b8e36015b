//! Parsing and reaching limits.

use super::*;

#[test]
fn limits_are_set_by_name() {
    let mut limits = Limits::default();
    for (name, value) in [("cpu", "2m"), ("memory", "1GiB"), ("file_size", "10M"), ("processes", "7")] {
        limits.set(name, value).unwrap();
    }
    assert_eq!(
        limits,
        Limits { cpu: Duration::from_secs(120), memory: 1 << 30, file_size: 10 << 20, processes: 7 }
    );
    assert_eq!(limits.to_string(), "CPU time 120 s, memory 1 GiB, a file 10 MiB, 7 processes");
    let mut wrong = |name, value| limits.set(name, value).unwrap_err();
    assert_eq!(
        wrong("disk", "1"),
        "unknown limit `disk`, expected one of `cpu`, `memory`, `file_size`, `processes`"
    );
    assert_eq!(
        wrong("cpu", "soon"),
        "`soon` is not a value for the limit `cpu`; write it like `90s` or `30m`"
    );
    assert_eq!(wrong("memory", "0"), "`0` is not a value for the limit `memory`; write it like `512MiB`");
    assert_eq!(wrong("processes", "0"), "`0` is not a value for the limit `processes`; write it like `512`");
    assert_eq!(limits.memory, 1 << 30, "what is wrong changes nothing");
}

#[test]
fn each_limit_is_named_when_it_is_reached() {
    let limits = Limits { cpu: Duration::from_secs(1), memory: 1 << 20, file_size: 5, processes: 3 };
    let at = Usage { cpu: limits.cpu, memory: limits.memory, processes: limits.processes };
    assert_eq!(limits.reached(&at), None, "the limit itself is allowed");
    let check = |usage: Usage, message: &str| {
        assert_eq!(limits.reached(&usage).map(|limit| limits.message(limit)).as_deref(), Some(message));
    };
    check(Usage { cpu: Duration::from_millis(1001), ..at }, "the limit of CPU time, 1 s, was reached");
    check(Usage { memory: at.memory + 1, ..at }, "the limit of memory, 1 MiB, was reached");
    check(Usage { processes: 4, ..at }, "the limit of processes, 3 at once, was reached");
    assert_eq!(limits.message(Limit::FileSize), "the limit of a file's size, 5 bytes, was reached");
}

#[cfg(unix)]
#[test]
fn the_kernel_names_two_of_them_by_a_signal() {
    use rustix::process::Signal;
    assert_eq!(Limit::of_signal(Signal::XCPU.as_raw()), Some(Limit::Cpu));
    assert_eq!(Limit::of_signal(Signal::XFSZ.as_raw()), Some(Limit::FileSize));
    assert_eq!(Limit::of_signal(Signal::KILL.as_raw()), None);
}
