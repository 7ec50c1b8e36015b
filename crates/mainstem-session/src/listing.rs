//! Pages of sessions: of those in the journal, and of those that are only open. Pure.

use mainstem_api::{Code, Problem, SessionQuery};
use mainstem_journal::{Listing, Part, Place};

/// Returns the sessions that a query selects.
///
/// # Errors
/// The query is out of its bounds, or its cursor is not one.
pub fn listing(query: &SessionQuery, part: Part) -> Result<Listing, Problem> {
    let mut listing = Listing::new(part, query.size()?);
    listing.search = query.search.clone().unwrap_or_default();
    listing.after = place(query.cursor.as_deref())?;
    Ok(listing)
}

/// Returns the place that a cursor names.
pub(crate) fn place(cursor: Option<&str>) -> Result<Option<Place>, Problem> {
    let wrong = |_| Problem::new(Code::BadQuery, "`cursor` is not the `next` of a page");
    cursor.map(|cursor| cursor.parse().map_err(wrong)).transpose()
}

/// Cuts the item that a page has too many. Returns the cursor behind the page if there was one.
pub(crate) fn cut<T>(items: &mut Vec<T>, max: usize, place: impl Fn(&T) -> Place) -> Option<String> {
    if items.len() <= max {
        return None;
    }
    items.truncate(max);
    items.last().map(|item| place(item).to_string())
}

/// A session's place, and the session.
pub(crate) type Placed<T> = (Place, T);

/// Returns a page of sessions that are only open and of others that are recorded, and the cursor
/// behind it if there are more. `recorded` has one session more than a page, if there are so many.
pub(crate) fn merge<T>(
    open: Vec<Placed<T>>,
    recorded: Vec<Placed<T>>,
    listing: &Listing,
) -> (Vec<Placed<T>>, Option<String>) {
    // Places behind what the journal has returned belong to later pages.
    let end = recorded.last().filter(|_| recorded.len() > listing.max).map(|(place, _)| place.clone());
    let is_here = |place: &Place| listing.has(place) && end.as_ref().is_none_or(|end| place >= end);
    let mut page: Vec<_> =
        recorded.into_iter().chain(open.into_iter().filter(|(place, _)| is_here(place))).collect();
    page.sort_by(|(one, _), (other, _)| other.cmp(one));
    let next = cut(&mut page, listing.max, |(place, _)| place.clone());
    (page, next.or_else(|| end.map(|end| end.to_string())))
}

#[cfg(test)]
mod tests;
