//! All pages together have each session once, whatever is open.

use std::collections::BTreeSet;

use mainstem_event::Timestamp;
use mainstem_journal::SessionSummary;
use proptest::prelude::*;

use super::*;

/// A session: when its last recorded run began, and when its last run began if it is open.
type Known = (Option<u64>, Option<u64>);

fn place(number: usize, at: u64) -> Place {
    Place { at: Timestamp::from_micros(at), name: format!("s{number}") }
}

/// Returns the names of all pages.
fn pages(sessions: &[Known], search: &str, max: usize) -> Vec<Vec<String>> {
    let at = |of: fn(&Known) -> Option<u64>| {
        let known = sessions.iter().enumerate();
        known.filter_map(|(number, known)| Some(place(number, of(known)?))).collect::<Vec<_>>()
    };
    let (recorded, open) = (at(|known| known.0), at(|known| known.1));
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
fn an_open_session_is_where_it_is_now() {
    let sessions = [(Some(1), None), (Some(2), Some(9)), (Some(3), None), (None, Some(2))];
    assert_eq!(pages(&sessions, "", 9), [["s1", "s2", "s3", "s0"]]);
    assert_eq!(pages(&sessions, "", 2).concat(), ["s1", "s2", "s3", "s0"]);
    assert_eq!(pages(&sessions, "S2", 1).concat(), ["s2"]);
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
        sessions in prop::collection::vec((prop::option::of(0_u64..9), prop::option::of(0_u64..9)), 0..14),
        search in prop::sample::select(&["", "1", "s"][..]),
        max in 1_usize..6,
    ) {
        let names = pages(&sessions, search, max).concat();
        let exists = |(number, known): (usize, &Known)| {
            let name = format!("s{number}");
            (*known != (None, None) && name.contains(search)).then_some(name)
        };
        let expected: BTreeSet<_> = sessions.iter().enumerate().filter_map(exists).collect();
        prop_assert_eq!(names.len(), expected.len(), "{:?}", names);
        prop_assert_eq!(names.into_iter().collect::<BTreeSet<_>>(), expected);
    }
}
