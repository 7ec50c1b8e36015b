//! All pages together have each session once, whatever is open.

use std::collections::BTreeSet;

use mainstem_event::Timestamp;
use mainstem_journal::SessionSummary;
use proptest::prelude::*;

use super::*;

/// A session: whether it is recorded, or only open; and when its last run began.
type Known = (bool, u64);

fn place(number: usize, at: u64) -> Place {
    Place { at: Timestamp::from_micros(at), name: format!("s{number}") }
}

/// Returns the names of all pages.
fn pages(sessions: &[Known], search: &str, max: usize) -> Vec<Vec<String>> {
    let places = |is_recorded: bool| {
        let known = sessions.iter().enumerate().filter(|(_, known)| known.0 == is_recorded);
        known.map(|(number, known)| place(number, known.1)).collect::<Vec<_>>()
    };
    let (recorded, open) = (places(true), places(false));
    let summary = |place: &Place| {
        let mut summary = SessionSummary::new(place.name.parse().unwrap());
        summary.place = place.clone();
        summary
    };
    let recorded: Vec<_> = recorded.iter().map(summary).collect();
    let mut listing = Listing::new(Part::All, max).with_search(search);
    let mut pages = Vec::new();
    loop {
        let more = listing.clone().with_max(max + 1);
        let found = more.page(recorded.clone()).into_iter().map(|summary| (summary.place, ())).collect();
        let (page, next) = merge(open.iter().map(|place| (place.clone(), ())).collect(), found, &listing);
        assert!(page.len() <= max && page.is_sorted_by(|one, other| one.0 > other.0));
        pages.push(page.into_iter().map(|(place, ())| place.name).collect());
        assert!(pages.len() <= 2 * sessions.len() + 2, "the pages have an end");
        match next {
            Some(next) => listing.after = Some(next.parse().unwrap()),
            None => return pages,
        }
    }
}

#[test]
fn sessions_that_are_only_open_are_between_the_others() {
    let sessions = [(true, 1), (false, 9), (true, 3), (false, 2)];
    assert_eq!(pages(&sessions, "", 9), [["s1", "s2", "s3", "s0"]]);
    assert_eq!(pages(&sessions, "", 2), [["s1", "s2"], ["s3", "s0"]]);
    assert_eq!(pages(&sessions, "S2", 1), [["s2"]]);
}

#[test]
fn queries_out_of_bounds_are_refused() {
    let check = |query: SessionQuery, expected: &str| {
        assert_eq!(listing(&query, Part::All).unwrap_err().detail, expected);
    };
    let limit = |limit| SessionQuery { limit: Some(limit), ..SessionQuery::default() };
    check(limit(0), "`limit` is 0; it is 1 to 1000");
    check(limit(1001), "`limit` is 1001; it is 1 to 1000");
    let search = |search: String| SessionQuery { search: Some(search), ..SessionQuery::default() };
    check(search("x".repeat(201)), "`search` has at most 200 characters, and no NUL");
    check(search("\0".to_owned()), "`search` has at most 200 characters, and no NUL");
    check(
        SessionQuery { cursor: Some("7".to_owned()), ..SessionQuery::default() },
        "`cursor` is not the `next` of a page",
    );
    assert_eq!(listing(&SessionQuery::default(), Part::All), Ok(Listing::new(Part::All, 100)));
}

proptest! {
    #[test]
    fn each_session_is_on_one_page(
        sessions in prop::collection::vec((any::<bool>(), 0_u64..9), 0..14),
        search in prop::sample::select(&["", "1", "s"][..]),
        max in 1_usize..6,
    ) {
        let names = pages(&sessions, search, max).concat();
        let expected: BTreeSet<_> =
            (0..sessions.len()).map(|number| format!("s{number}")).filter(|name| name.contains(search)).collect();
        prop_assert_eq!(names.len(), expected.len(), "{:?}", names);
        prop_assert_eq!(names.into_iter().collect::<BTreeSet<_>>(), expected);
    }
}
