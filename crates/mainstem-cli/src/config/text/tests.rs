//! Values as written, and as read.

use super::*;

#[test]
fn dollars_are_read_exactly() {
    let check = |text: &str, micros: Option<u64>| {
        assert_eq!(dollars(text).ok(), micros.map(Cost::from_micros), "{text}")
    };
    check("0", Some(0));
    check("2", Some(2_000_000));
    check("$2.5", Some(2_500_000));
    check("0.000001", Some(1));
    check("1.", Some(1_000_000));
    for wrong in [
        "",
        ".",
        ".5",
        "$",
        "-1",
        "+1",
        "1e3",
        "0.0000001",
        "1.2.3",
        "1,5",
        "99999999999999999999",
        "$$1",
        "1.+5",
    ] {
        check(wrong, None);
    }
}

#[test]
fn limits_begin_at_one() {
    assert_eq!(positive::<std::num::NonZeroU32>("0").unwrap_err(), "must be at least 1");
    assert_eq!(positive::<std::num::NonZeroU32>("12").map(std::num::NonZeroU32::get), Ok(12));
    assert!(positive::<std::num::NonZeroU32>("x").is_err() && positive::<std::num::NonZeroU32>("").is_err());
}
