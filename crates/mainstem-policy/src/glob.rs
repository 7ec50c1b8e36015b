//! Wildcards: `*` for anything, `?` for one character. Brackets and braces are literal, because
//! commands and JSON are full of them.

/// Returns `true` if the whole of `text` matches `glob`.
pub(crate) fn matches(glob: &str, text: &str) -> bool {
    let glob: Vec<char> = glob.chars().collect();
    let text: Vec<char> = text.chars().collect();
    wild(&glob, &text, |g| *g == '*', |g, t| *g == '?' || g == t)
}

/// Matches `items` against `pattern`, in which an element for which `is_star` is true stands for
/// any number of items. Takes at most the product of both lengths: only the latest star is retried.
pub(crate) fn wild<P, T>(
    pattern: &[P],
    items: &[T],
    is_star: impl Fn(&P) -> bool,
    fits: impl Fn(&P, &T) -> bool,
) -> bool {
    let (mut p, mut i) = (0, 0);
    let mut retry = None;
    while i < items.len() {
        match pattern.get(p) {
            Some(star) if is_star(star) => {
                p += 1;
                retry = Some((p, i));
            }
            Some(one) if fits(one, &items[i]) => (p, i) = (p + 1, i + 1),
            _ => {
                let Some((after_star, taken)) = retry else { return false };
                (p, i) = (after_star, taken + 1);
                retry = Some((p, i));
            }
        }
    }
    pattern[p..].iter().all(is_star)
}

/// Returns `true` if `glob` matches everything.
pub(crate) fn is_everything(glob: &str) -> bool {
    !glob.is_empty() && glob.chars().all(|c| c == '*')
}

#[cfg(test)]
mod tests;
