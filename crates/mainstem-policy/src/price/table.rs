//! Public list prices, as on the vendors' pages in November 2026 (standard service, text,
//! five-minute caches).
//!
//! If a discount is announced with its end, the later price applies: a budget should overestimate.
//! Names are whole, because a price guessed from a similar name is worse than none.

use super::{Cost, LongPrompt, Price};

/// Thousandths of a dollar for a million tokens: input, output, cache read, cache write.
type Row = (&'static [&'static str], [u64; 4], Option<LongPrompt>);

const FLAT: Option<LongPrompt> = None;
const OPENAI_LONG: Option<LongPrompt> = Some(LongPrompt::new(272_000, 200, 150));
const GEMINI_LONG: Option<LongPrompt> = Some(LongPrompt::new(200_000, 200, 150));
const HAIKU_LONG: Option<LongPrompt> = Some(LongPrompt::new(100_000, 500, 500));

#[rustfmt::skip]
const TABLE: &[Row] = &[
    (&["claude-fable-5-1"],                                     [10_000, 50_000,   250, 12_500], FLAT),
    (&["claude-opus-5-5"],                                      [ 4_000, 20_000,   200,  5_000], FLAT),
    (&["claude-opus-5", "claude-opus-4-8", "claude-opus-4-7",
       "claude-opus-4-6", "claude-opus-4-5"],                   [ 5_000, 25_000,   500,  6_250], FLAT),
    (&["claude-opus-4-1", "claude-opus-4", "claude-opus-4-0"],  [15_000, 75_000, 1_500, 18_750], FLAT),
    (&["claude-sonnet-5-5"],                                    [ 2_000, 10_000,   100,  2_500], FLAT),
    (&["claude-sonnet-5"],                                      [ 2_000, 10_000,   200,  2_500], FLAT),
    (&["claude-sonnet-4-6", "claude-sonnet-4-5",
       "claude-sonnet-4", "claude-sonnet-4-0"],                 [ 3_000, 15_000,   300,  3_750], FLAT),
    (&["claude-haiku-5-5"],                                     [   100,    500,    10,    125], HAIKU_LONG),
    (&["claude-haiku-4-5"],                                     [ 1_000,  5_000,   100,  1_250], FLAT),

    (&["gpt-6-astra"],                                          [10_000, 50_000, 1_000, 12_500], OPENAI_LONG),
    (&["gpt-6.1-sol"],                                          [ 2_000, 10_000,   100,  2_500], OPENAI_LONG),
    (&["gpt-6.1-terra"],                                        [ 1_000,  5_000,    50,  1_250], OPENAI_LONG),
    (&["gpt-6-sol"],                                            [ 2_000, 10_000,   200,  2_500], OPENAI_LONG),
    (&["gpt-6-luna"],                                           [   100,    500,    10,    125], OPENAI_LONG),
    (&["gpt-5.6", "gpt-5.6-sol"],                               [ 5_000, 30_000,   500,  6_250], OPENAI_LONG),
    (&["gpt-5.6-terra"],                                        [ 2_000, 12_000,   200,  2_500], OPENAI_LONG),
    (&["gpt-5.6-luna"],                                         [   200,  1_200,    20,    250], OPENAI_LONG),
    (&["gpt-5.5"],                                              [ 5_000, 30_000,   500,  5_000], OPENAI_LONG),
    (&["gpt-5.4"],                                              [ 2_500, 15_000,   250,  2_500], OPENAI_LONG),
    (&["gpt-5.4-mini"],                                         [   750,  4_500,    75,    750], FLAT),
    (&["gpt-5.4-nano"],                                         [   200,  1_250,    20,    200], FLAT),
    (&["gpt-5", "gpt-5.1"],                                     [ 1_250, 10_000,   125,  1_250], FLAT),
    (&["gpt-5-mini"],                                           [   250,  2_000,    25,    250], FLAT),
    (&["gpt-5-nano"],                                           [    50,    400,     5,     50], FLAT),
    (&["gpt-4.1", "o3"],                                        [ 2_000,  8_000,   500,  2_000], FLAT),
    (&["gpt-4.1-mini"],                                         [   400,  1_600,   100,    400], FLAT),
    (&["gpt-4.1-nano"],                                         [   100,    400,    25,    100], FLAT),
    (&["gpt-4o"],                                               [ 2_500, 10_000, 1_250,  2_500], FLAT),
    (&["gpt-4o-mini"],                                          [   150,    600,    75,    150], FLAT),

    (&["gemini-3.8-flash", "gemini-3.7-flash",
       "gemini-3.6-flash"],                                     [ 1_500,  7_500,   150,  1_500], FLAT),
    (&["gemini-3.5-flash-lite"],                                [   300,  2_500,    30,    300], FLAT),
    (&["gemini-3.1-pro-preview"],                               [ 2_000, 12_000,   200,  2_000], GEMINI_LONG),
    (&["gemini-2.5-pro"],                                       [ 1_250, 10_000,   125,  1_250], GEMINI_LONG),
    (&["gemini-2.5-flash"],                                     [   300,  2_500,    30,    300], FLAT),
    (&["gemini-2.5-flash-lite"],                                [   100,    400,    10,    100], FLAT),
];

/// Returns the price of the model with exactly this name.
pub(super) fn price(name: &str) -> Option<Price> {
    let (_, [input, output, read, write], long_prompt) =
        TABLE.iter().find(|(names, ..)| names.contains(&name))?;
    let cost = |thousandths: u64| Cost::from_micros(thousandths * 1_000);
    let price = Price::new(cost(*input), cost(*output)).with_cache(cost(*read), cost(*write));
    Some(Price { long_prompt: *long_prompt, ..price })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::TABLE;

    #[test]
    fn each_model_stands_once_and_costs_something() {
        let mut seen = BTreeSet::new();
        for (names, [input, output, read, write], _) in TABLE {
            assert!(names.iter().all(|name| seen.insert(name)), "{names:?}");
            assert!(0 < *read && read < input && input <= write && input < output, "{names:?}");
        }
    }
}
