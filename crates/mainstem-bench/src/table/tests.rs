//! Bounds that are met, bounds that are missed, and the formats.

use super::*;

#[test]
fn a_bound_is_reached_or_missed() {
    let check = |figure: Figure, reached, fails| {
        assert_eq!((figure.is_reached(), figure.fails()), (reached, fails), "{figure:?}");
    };
    let figure = |value| Figure { hard: true, ..Figure::new("", value, "") };
    check(figure(2.0), None, false);
    check(figure(2.0).at_most(2.0), Some(true), false);
    check(figure(2.1).at_most(2.0), Some(false), true);
    check(figure(2.0).at_least(2.0), Some(true), false);
    check(figure(1.9).at_least(2.0), Some(false), true);
    check(figure(2.1).at_most(2.0).limited_to(3.0), Some(false), false);
    check(figure(3.1).at_most(2.0).limited_to(3.0), Some(false), true);
    check(Figure { hard: false, ..figure(2.1).at_most(2.0) }, Some(false), false);
}

#[test]
fn columns_have_one_width() {
    let fast = Figure { row: 1, ..Figure::new("an event", 0.123_45, " µs").at_most(0.5) };
    let slow = Figure { row: 10, hard: true, ..Figure::new("many", 1234.5, " µs").at_most(1000.0) };
    let expected = "
| row | what     | measured | goal   | reached   |
| --- | -------- | -------- | ------ | --------- |
| 1   | an event | 0.12 µs  | ≤ 0.5  | yes       |
| 10  | many     | 1234 µs  | ≤ 1000 | NO (hard) |";
    assert_eq!(text(&[fast, slow]), expected.trim());
}
