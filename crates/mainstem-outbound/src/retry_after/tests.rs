//! Every form, and invalid ones.

use super::*;

#[test]
fn every_form_is_read() {
    let check = |headers: &[(&'static str, &str)], expected: Option<Duration>| {
        let headers = headers.iter().map(|(n, v)| (HeaderName::from_static(n), v.parse().unwrap())).collect();
        assert_eq!(retry_after(&headers), expected, "{headers:?}");
    };
    let ms = |ms| Some(Duration::from_millis(ms));
    let date = ("date", "Sun, 06 Nov 1994 08:49:30 GMT");
    let later = ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT");
    check(&[], None);
    check(&[("retry-after", "20")], ms(20_000));
    check(&[("retry-after", " 1.5 ")], ms(1500));
    check(&[("retry-after-ms", "250"), ("retry-after", "1")], ms(250));
    check(&[("retry-after-ms", "soon"), ("retry-after", "1")], ms(1000));
    check(&[later, date], ms(7000));
    check(&[later], None);
    check(&[("retry-after", "Sun, 06 Nov 1994 08:49:00 GMT"), date], None);
    for nonsense in ["", "-1", "NaN", "inf", "1e300", "tomorrow"] {
        check(&[("retry-after", nonsense), date], None);
    }
}
