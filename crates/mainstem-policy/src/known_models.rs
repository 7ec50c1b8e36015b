//! The models that are known by name: their list prices and context windows, as on the vendors'
//! pages in November 2026 ([`DATE`]).
//!
//! Prices are those of the standard service, for text. If a discount is announced with its end, the
//! later price applies: a budget should overestimate. A window is the longest prompt: what the
//! vendor reserves for the answer is left out. Names are whole, because a price guessed from a
//! similar name is worse than none.

use crate::{
    glob,
    price::{Cost, LongPrompt, Price},
};

/// The month of the built-in list of models, as `YYYY-MM`.
pub const DATE: &str = "2026-11";

/// Names; thousandths of a dollar for a million tokens (input, output, cache read, cache write);
/// the surcharge for long prompts; the tokens of the longest prompt.
type Row = (&'static [&'static str], [u64; 4], Option<LongPrompt>, u64);

const FLAT: Option<LongPrompt> = None;
const OPENAI_LONG: Option<LongPrompt> = Some(LongPrompt::new(272_000, 200, 150));
const GEMINI_LONG: Option<LongPrompt> = Some(LongPrompt::new(200_000, 200, 150));
const HAIKU_LONG: Option<LongPrompt> = Some(LongPrompt::new(100_000, 500, 500));

#[rustfmt::skip]
const TABLE: &[Row] = &[
    (&["claude-fable-5-1"],                                     [10_000, 50_000,   250, 12_500], FLAT,        1_000_000),
    (&["claude-opus-5-5"],                                      [ 4_000, 20_000,   200,  5_000], FLAT,        1_000_000),
    (&["claude-opus-5", "claude-opus-4-8", "claude-opus-4-7",
       "claude-opus-4-6"],                                      [ 5_000, 25_000,   500,  6_250], FLAT,        1_000_000),
    (&["claude-opus-4-5"],                                      [ 5_000, 25_000,   500,  6_250], FLAT,          200_000),
    (&["claude-opus-4-1", "claude-opus-4", "claude-opus-4-0"],  [15_000, 75_000, 1_500, 18_750], FLAT,          200_000),
    (&["claude-sonnet-5-5"],                                    [ 2_000, 10_000,   100,  2_500], FLAT,        1_000_000),
    (&["claude-sonnet-5"],                                      [ 2_000, 10_000,   200,  2_500], FLAT,        1_000_000),
    (&["claude-sonnet-4-6"],                                    [ 3_000, 15_000,   300,  3_750], FLAT,        1_000_000),
    (&["claude-sonnet-4-5", "claude-sonnet-4",
       "claude-sonnet-4-0"],                                    [ 3_000, 15_000,   300,  3_750], FLAT,          200_000),
    (&["claude-haiku-5-5"],                                     [   100,    500,    10,    125], HAIKU_LONG,  1_000_000),
    (&["claude-haiku-4-5"],                                     [ 1_000,  5_000,   100,  1_250], FLAT,          200_000),

    (&["gpt-6-astra"],                                          [10_000, 50_000, 1_000, 12_500], OPENAI_LONG,   922_000),
    (&["gpt-6.1-sol"],                                          [ 2_000, 10_000,   100,  2_500], OPENAI_LONG,   922_000),
    (&["gpt-6.1-terra"],                                        [ 1_000,  5_000,    50,  1_250], OPENAI_LONG,   922_000),
    (&["gpt-6-sol"],                                            [ 2_000, 10_000,   200,  2_500], OPENAI_LONG,   922_000),
    (&["gpt-6-luna"],                                           [   100,    500,    10,    125], OPENAI_LONG,   922_000),
    (&["gpt-5.6", "gpt-5.6-sol"],                               [ 5_000, 30_000,   500,  6_250], OPENAI_LONG,   922_000),
    (&["gpt-5.6-terra"],                                        [ 2_000, 12_000,   200,  2_500], OPENAI_LONG,   922_000),
    (&["gpt-5.6-luna"],                                         [   200,  1_200,    20,    250], OPENAI_LONG,   922_000),
    (&["gpt-5.5"],                                              [ 5_000, 30_000,   500,  5_000], OPENAI_LONG,   922_000),
    (&["gpt-5.4"],                                              [ 2_500, 15_000,   250,  2_500], OPENAI_LONG,   922_000),
    (&["gpt-5.4-mini"],                                         [   750,  4_500,    75,    750], FLAT,          272_000),
    (&["gpt-5.4-nano"],                                         [   200,  1_250,    20,    200], FLAT,          272_000),
    (&["gpt-5", "gpt-5.1"],                                     [ 1_250, 10_000,   125,  1_250], FLAT,          272_000),
    (&["gpt-5-mini"],                                           [   250,  2_000,    25,    250], FLAT,          272_000),
    (&["gpt-5-nano"],                                           [    50,    400,     5,     50], FLAT,          272_000),
    (&["gpt-4.1"],                                              [ 2_000,  8_000,   500,  2_000], FLAT,        1_047_576),
    (&["o3"],                                                   [ 2_000,  8_000,   500,  2_000], FLAT,          200_000),
    (&["gpt-4.1-mini"],                                         [   400,  1_600,   100,    400], FLAT,        1_047_576),
    (&["gpt-4.1-nano"],                                         [   100,    400,    25,    100], FLAT,        1_047_576),
    (&["gpt-4o"],                                               [ 2_500, 10_000, 1_250,  2_500], FLAT,          128_000),
    (&["gpt-4o-mini"],                                          [   150,    600,    75,    150], FLAT,          128_000),

    (&["gemini-3.8-flash", "gemini-3.7-flash",
       "gemini-3.6-flash"],                                     [ 1_500,  7_500,   150,  1_500], FLAT,        1_048_576),
    (&["gemini-3.5-flash-lite"],                                [   300,  2_500,    30,    300], FLAT,        1_048_576),
    (&["gemini-3.1-pro-preview"],                               [ 2_000, 12_000,   200,  2_000], GEMINI_LONG, 1_048_576),
    (&["gemini-2.5-pro"],                                       [ 1_250, 10_000,   125,  1_250], GEMINI_LONG, 1_048_576),
    (&["gemini-2.5-flash"],                                     [   300,  2_500,    30,    300], FLAT,        1_048_576),
    (&["gemini-2.5-flash-lite"],                                [   100,    400,    10,    100], FLAT,        1_048_576),
];

/// Returns the price of the model, if it is in the list.
pub(crate) fn price(model: &str) -> Option<Price> {
    let (names, [input, output, read, write], long_prompt, _) = row(model)?;
    let cost = |thousandths: u64| Cost::from_micros(thousandths * 1_000);
    let price = Price::new(cost(*input), cost(*output)).with_cache(cost(*read), cost(*write));
    let price = Price { long_prompt: *long_prompt, ..price };
    // Anthropic's caches of an hour cost twice the input, for each model.
    let has_hour = names.iter().any(|name| name.starts_with("claude-"));
    Some(if has_hour { price.with_cache_write_1h(cost(*input * 2)) } else { price })
}

/// Returns the context window of the model in tokens, if it is in the list.
pub(crate) fn window(model: &str) -> Option<u64> {
    row(model).map(|(.., window)| *window)
}

/// Returns the names of the models in the list, those of one vendor together.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().flat_map(|(names, ..)| names.iter().copied())
}

fn row(model: &str) -> Option<&'static Row> {
    forms(model).into_iter().find_map(|name| TABLE.iter().find(|(names, ..)| names.contains(&name)))
}

/// Returns the pattern that applies to a model: of those that match one of its names, the one with
/// the most literal characters.
pub(crate) fn most_exact<'a>(patterns: impl Iterator<Item = &'a String>, model: &str) -> Option<&'a String> {
    let forms = forms(model);
    let fits = |pattern: &&String| forms.iter().any(|name| glob::matches(pattern, name));
    let literals = |pattern: &str| pattern.chars().filter(|c| !matches!(c, '*' | '?')).count();
    patterns.filter(fits).max_by_key(|pattern| literals(pattern))
}

/// Returns the names under which a model may be listed: whole, without its provider, and each
/// without its date.
fn forms(model: &str) -> Vec<&str> {
    let bare = model.split_once(':').map(|(_, bare)| bare);
    [Some(model), bare].into_iter().flatten().flat_map(|name| [name, undated(name)]).collect()
}

/// Removes `-2024-11-20`, `-20241120`, `@20241120` or `-latest` from the end.
pub(crate) fn undated(name: &str) -> &str {
    let is_date = |date: &str| {
        let digits = date.bytes().filter(u8::is_ascii_digit).count();
        digits == 8
            && (date.len() == 8
                || date.len() == 10 && date.as_bytes()[4] == b'-' && date.as_bytes()[7] == b'-')
    };
    let dated = |(at, _): (usize, &str)| is_date(&name[at + 1..]).then_some(&name[..at]);
    name.strip_suffix("-latest").or_else(|| name.match_indices(['-', '@']).find_map(dated)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::TABLE;

    #[test]
    fn each_model_stands_once_and_costs_something() {
        let mut seen = BTreeSet::new();
        for (names, [input, output, read, write], _, window) in TABLE {
            assert!(names.iter().all(|name| seen.insert(name)), "{names:?}");
            assert!((32_000..=2_000_000).contains(window), "{names:?}");
            assert!(0 < *read && read < input && input <= write && input < output, "{names:?}");
        }
    }
}
