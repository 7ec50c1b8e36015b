//! Writing and reading RFC 3339.

use proptest::prelude::*;

use super::*;

fn check(text: &str, micros: u64, written: &str) {
    let time: Timestamp = text.parse().unwrap();
    assert_eq!(time.as_micros(), micros, "{text}");
    assert_eq!(time.to_string(), written, "{text}");
}

#[test]
fn reads_and_writes_rfc_3339() {
    check("1970-01-01T00:00:00Z", 0, "1970-01-01T00:00:00.000000Z");
    check("1970-01-01T00:00:00.000001Z", 1, "1970-01-01T00:00:00.000001Z");
    check("2026-11-21T10:00:00Z", 1_795_255_200_000_000, "2026-11-21T10:00:00.000000Z");
    check("2026-11-21T10:00:00.5Z", 1_795_255_200_500_000, "2026-11-21T10:00:00.500000Z");
    check("2024-02-29T23:59:59.123456Z", 1_709_251_199_123_456, "2024-02-29T23:59:59.123456Z");
    // Fractions of a microsecond are cut.
    check("2026-11-21T10:00:00.123456789Z", 1_795_255_200_123_456, "2026-11-21T10:00:00.123456Z");
    check("9999-12-31T23:59:59.999999Z", 253_402_300_799_999_999, "9999-12-31T23:59:59.999999Z");
}

#[test]
fn refuses_what_is_not_a_time() {
    for text in ["", "now", "2026-11-21", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "1795255200"] {
        let error = serde_json::from_value::<Timestamp>(text.into()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("not an RFC 3339 time {text:?}")), "{error}");
    }
}

#[test]
fn a_time_that_rfc_3339_cannot_write_does_not_panic() {
    assert_eq!(Timestamp::from_micros(u64::MAX).to_string(), "9999-12-31T23:59:59.999999Z");
}

#[test]
fn a_clock_that_goes_back_has_waited_0_ms() {
    let (early, late) = (Timestamp::from_micros(1_000), Timestamp::from_micros(4_999));
    assert_eq!(late.millis_since(early), 3);
    assert_eq!(early.millis_since(late), 0);
}

proptest! {
    #[test]
    fn what_is_written_is_read(micros in 0..=253_402_300_799_999_999u64) {
        let time = Timestamp::from_micros(micros);
        let json = serde_json::to_string(&time).unwrap();
        prop_assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), time);
    }
}
