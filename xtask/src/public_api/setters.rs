//! The names of setters: a public method that takes `self` and returns `Self` is `with_x`.

use std::collections::BTreeMap;

use crate::problem::Problem;

/// Items that are not setters: by the end of their path, or the path up to `::`.
const OTHERS: [(&str, &str); 12] = [
    ("mainstem_model::scripted::", "the steps of a script, in order"),
    ("CancelReason::below", "a derived value"),
    ("Diagnostic::as_warning", "a derived value"),
    ("Timestamp::after", "a derived value"),
    ("Usage::add", "an operator"),
    ("Cost::add", "an operator"),
    ("Budget::tighter", "a derived value"),
    ("Part::doing", "a derived value"),
    ("RunContext::unawaited", "a derived value"),
    ("SpecError::about", "a derived value"),
    ("SpecError::in_file", "a derived value"),
    ("Workspace::protected_as", "a derived value"),
];

/// Names each setter of another form.
pub(super) fn check(listings: &BTreeMap<String, Vec<String>>) -> Vec<Problem> {
    let problem = |library: &String, path: &str| {
        let advice = "takes `self` and returns `Self`: name it `with_x`, or list it in";
        Problem::file(super::listing(library), format!("{path} {advice} {}", file!()))
    };
    let found = listings.iter().flat_map(|(library, items)| items.iter().map(move |item| (library, item)));
    found.filter_map(|(library, item)| Some(problem(library, misnamed(item)?))).collect()
}

/// Returns the path of a method that should be `with_x`.
fn misnamed(item: &str) -> Option<&str> {
    let (path, signature) = item.strip_prefix("pub fn ")?.split_once('(')?;
    let path = path.split('<').next().unwrap_or(path);
    let takes_self = signature.starts_with("self,") || signature.starts_with("self)");
    let returns_self = signature.ends_with("-> Self") || signature.contains("-> core::result::Result<Self,");
    let name = path.rsplit("::").next()?;
    let is_with = name.starts_with("with_") || name.starts_with("without_");
    let is_other = OTHERS.iter().any(|(other, _)| {
        if other.ends_with("::") { path.starts_with(other) } else { path.ends_with(other) }
    });
    (takes_self && returns_self && !is_with && !is_other).then_some(path)
}

#[cfg(test)]
mod tests {
    //! Which items are misnamed setters.

    use super::*;

    #[test]
    fn a_setter_is_with_x() {
        #[track_caller]
        fn check(item: &str, expected: Option<&str>) {
            assert_eq!(misnamed(item), expected, "{item}");
        }
        check("pub fn m::Builder::with_tokens(self, m::Tokens) -> Self", None);
        check("pub fn m::Builder::tokens(self, m::Tokens) -> Self", Some("m::Builder::tokens"));
        check("pub fn m::Filter::children(self) -> Self", Some("m::Filter::children"));
        check("pub fn m::Filter::kinds<K: A>(self, impl B) -> Self", Some("m::Filter::kinds"));
        check("pub fn m::Set::with(self, u8) -> core::result::Result<Self, m::Error>", Some("m::Set::with"));
        check("pub fn m::Builder::build(self) -> core::result::Result<m::Server, m::Error>", None);
        check("pub fn m::Id::new(&str) -> Self", None);
        check("pub fn m::Id::clone(&self) -> Self", None);
        check("pub fn mainstem_model::scripted::Turn::text(self, u8) -> Self", None);
        check("pub fn mainstem_message::Usage::add(self, Self) -> Self", None);
    }
}
