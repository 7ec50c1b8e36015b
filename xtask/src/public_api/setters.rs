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
    let problem = |library: &String, path: String| {
        let advice = "takes `self` and returns `Self`: name it `with_x`, or list it in";
        Problem::file(super::listing(library), format!("{path} {advice} {}", file!()))
    };
    let found = listings.iter().flat_map(|(library, items)| items.iter().map(move |item| (library, item)));
    found.filter_map(|(library, item)| Some(problem(library, misnamed(item)?))).collect()
}

/// Returns the path of a method that should be `with_x`, without generics.
fn misnamed(item: &str) -> Option<String> {
    let (path, signature) = split(item.strip_prefix("pub fn ")?);
    let takes_self = signature.starts_with("(self,") || signature.starts_with("(self)");
    let returns_self = signature.ends_with("-> Self") || signature.contains("-> core::result::Result<Self,");
    let name = path.rsplit("::").next()?;
    let is_with = name.starts_with("with_") || name.starts_with("without_");
    let is_other = OTHERS.iter().any(|(other, _)| match other.ends_with("::") {
        true => path.starts_with(other),
        false => path.ends_with(other),
    });
    (takes_self && returns_self && !is_with && !is_other).then_some(path)
}

/// Splits a function into its path, without generics, and the rest from its parameters on.
fn split(function: &str) -> (String, &str) {
    let (mut path, mut depth, mut last) = (String::new(), 0, ' ');
    for (at, char) in function.char_indices() {
        match char {
            '(' if depth == 0 => return (path, &function[at..]),
            '<' => depth += 1,
            '>' if last != '-' => depth -= 1,
            _ if depth == 0 => path.push(char),
            _ => {}
        }
        last = char;
    }
    (path, "")
}

#[cfg(test)]
mod tests {
    //! Which items are misnamed setters.

    use super::*;

    #[test]
    fn a_setter_is_with_x() {
        #[track_caller]
        fn check(item: &str, expected: Option<&str>) {
            assert_eq!(misnamed(item).as_deref(), expected, "{item}");
        }
        check("pub fn m::Builder::with_tokens(self, m::Tokens) -> Self", None);
        check("pub fn m::Builder::tokens(self, m::Tokens) -> Self", Some("m::Builder::tokens"));
        check("pub fn m::Filter::children(self) -> Self", Some("m::Filter::children"));
        check("pub fn m::Filter::kinds<K: A>(self, impl B) -> Self", Some("m::Filter::kinds"));
        check("pub fn m::Set::with(self, u8) -> core::result::Result<Self, m::Error>", Some("m::Set::with"));
        check("pub fn m::Builder::build(self) -> core::result::Result<m::Server, m::Error>", None);
        check("pub fn m::Tool<A, F: Fn(A) -> u8>::with_read_only(self, bool) -> Self", None);
        check("pub fn m::Tool<F: Fn(u8) -> u8>::read_only<B>(self, B) -> Self", Some("m::Tool::read_only"));
        check("pub fn m::Id::new(&str) -> Self", None);
        check("pub fn m::Id::clone(&self) -> Self", None);
        check("pub fn mainstem_model::scripted::Turn::text(self, u8) -> Self", None);
        check("pub fn mainstem_message::Usage::add(self, Self) -> Self", None);
    }
}
