//! What a notice says, and who is told.

use super::*;

#[test]
fn a_notice_reaches_the_readers_of_its_sessions() {
    let notices = Notices::default();
    let mut readers: Vec<_> = [1, 12, 123].map(|no| notices.subscribe(no)).into();
    let mut told = |text: &str| {
        notices.tell(text);
        readers
            .iter_mut()
            .map(|reader| {
                reader.has_changed().unwrap() && {
                    reader.mark_unchanged();
                    true
                }
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(told(&notice([12])), [false, true, false]);
    assert_eq!(told(&notice([1, 123])), [true, false, true]);
    assert_eq!(told(&notice([])), [false; 3]);
    assert_eq!(told("x 12 y"), [false, true, false], "of a later program");
    assert_eq!(told(&notice(0..10_000)), [true; 3], "too many to name");
    readers.clear();
    notices.tell_all();
    assert_eq!(notices.lock().len(), 0);
}
