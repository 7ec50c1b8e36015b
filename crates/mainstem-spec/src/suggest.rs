//! "Did you mean": the candidate nearest to a mistyped word.

/// Returns the candidate a typo away from `word`; case, `_` and `-` don't count.
///
/// ```
/// use mainstem_spec::closest;
///
/// assert_eq!(closest("raed_file", ["read_file", "write_file"]), Some("read_file"));
/// assert_eq!(closest("fly", ["read_file", "write_file"]), None);
/// ```
#[must_use]
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = plain(word);
    let allowed = (word.chars().count() / 3).clamp(1, 2);
    let distance = |candidate: &str| strsim::damerau_levenshtein(&word, &plain(candidate));
    let near = candidates.into_iter().map(|candidate| (distance(candidate), candidate));
    near.filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, near)| near)
}

fn plain(word: &str) -> String {
    word.chars().filter(|c| !matches!(c, '_' | '-')).take(64).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn typos_find_their_word() {
        let check = |word: &str, expected: Option<&str>| {
            let known = [
                "description",
                "model",
                "mode",
                "tools",
                "top_p",
                "disallowed_tools",
                "ask",
                "workspace.mode",
            ];
            assert_eq!(closest(word, known), expected, "{word}");
        };
        check("desciption", Some("description"));
        check("Description", Some("description"));
        check("disallowedTools", Some("disallowed_tools"));
        check("topP", Some("top_p"));
        check("modle", Some("model"));
        check("tool", Some("tools"));
        check("aks", Some("ask"));
        check("colour", None);
        check("workspace.root", None);
        check("x", None);
        check("", None);
        check(&"x".repeat(100_000), None);
    }
}
