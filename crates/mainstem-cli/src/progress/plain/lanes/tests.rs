//! The order of lines.

use super::*;

/// Takes lines as `<seconds> <lane><text>`, and `<seconds> <lane>.` for an end; returns the lines
/// that were due by then, with `;` between the moments.
fn check(script: &[(f64, usize, &str)], expected: &str) {
    let mut lanes = Lanes::new();
    let mut said = Vec::new();
    for (seconds, lane, text) in script {
        let now = Timestamp::from_micros((seconds * 1e6) as u64);
        match *text {
            "." => lanes.leave(*lane),
            "" => {}
            text => lanes.say(*lane, now, format!("{lane}{text}")),
        }
        let due: Vec<_> = std::iter::from_fn(|| lanes.next(now)).collect();
        said.push(due.join(" "));
    }
    let rest: Vec<_> = std::iter::from_fn(|| lanes.rest()).collect();
    assert_eq!(format!("{} | {}", said.join(";"), rest.join(" ")), expected);
}

#[test]
fn one_speaks_until_it_is_silent_or_done() {
    check(&[(0.0, 0, "a"), (0.1, 1, "a"), (0.2, 0, "b"), (0.3, 1, "b")], "0a;;0b; | 1a 1b");
    check(&[(0.0, 0, "a"), (0.1, 1, "a"), (0.2, 0, "."), (0.3, 1, "b")], "0a;;1a;1b | ");
    check(&[(0.0, 0, "a"), (0.1, 1, "a"), (0.9, 9, ""), (1.0, 9, ""), (1.1, 0, "b")], "0a;;;1a; | 0b");
}

#[test]
fn who_waits_longest_is_next() {
    check(
        &[(0.0, 0, "a"), (0.1, 2, "a"), (0.2, 1, "a"), (0.3, 0, "."), (0.4, 2, "."), (0.5, 1, ".")],
        "0a;;;2a;1a; | ",
    );
}

#[test]
fn nobody_speaks_for_ever_and_nobody_is_cut_short() {
    let script = [
        (0.0, 0, "a"),
        (0.9, 1, "a"),
        (0.9, 2, "a"),
        (1.8, 0, "b"),
        (2.7, 0, "c"),
        (3.6, 0, "d"),
        (4.5, 0, "e"),
        (5.4, 0, "f"),
        (5.9, 0, "g"),
        (6.0, 1, "b"),
        (6.9, 1, "c"),
        (7.8, 1, "d"),
        (8.7, 1, "e"),
        (8.9, 1, "f"),
    ];
    check(&script, "0a;;;0b;0c;0d;0e;0f;1a;1b;1c;1d;1e;2a | 0g 1f");
}

#[test]
fn the_rest_keeps_lines_together() {
    check(&[(0.0, 0, "a"), (0.1, 1, "a"), (0.1, 2, "a"), (0.2, 1, "b")], "0a;;; | 1a 1b 2a");
}
