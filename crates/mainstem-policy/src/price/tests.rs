//! Costs of calls, and the choice of prices.

use mainstem_message::Usage;
use proptest::prelude::*;
use serde_json::json;

use super::{Cost, LongPrompt, Price, Prices};
use crate::known_models::undated;

fn dollars(input: u64, output: u64) -> Price {
    Price::new(Cost::from_dollars(input), Cost::from_dollars(output))
}

fn usage(input: u64, output: u64, read: u64, write: u64) -> Usage {
    let mut usage = Usage::new(input, output);
    (usage.cache_read_tokens, usage.cache_write_tokens) = (read, write);
    usage
}

#[test]
fn known_models_cost_their_list_price() {
    let check = |model: &str, usage: Usage, expected: &str| {
        let cost = Prices::default().cost(model, &usage).map(|cost| cost.to_string());
        assert_eq!(cost.as_deref().unwrap_or("unknown"), expected, "{model}");
    };
    let million = usage(1_000_000, 1_000_000, 0, 0);
    check("gpt-4o-mini", million, "$0.75");
    check("openai:gpt-4o-mini", million, "$0.75");
    check("openai:gpt-4o-mini-2024-07-18", million, "$0.75");
    check("claude-opus-4-20250514", million, "$90.00");
    check("claude-opus-4-5-20251101", million, "$30.00");
    check("anthropic:claude-sonnet-4@20250514", million, "$18.00");
    check("claude-sonnet-4-5-latest", million, "$18.00");
    check("gemini:gemini-2.5-flash", million, "$2.80");
    check("gpt-4o", usage(1_000_000, 0, 400_000, 0), "$2.00");
    check("claude-sonnet-4-5", usage(1_000_000, 0, 500_000, 250_000), "$1.8375");
    let for_an_hour = |tokens| {
        let mut usage = usage(1_000_000, 0, 0, 500_000);
        usage.cache_write_1h_tokens = tokens;
        usage
    };
    check("claude-sonnet-4-5", for_an_hour(500_000), "$4.50");
    check("claude-sonnet-4-5", for_an_hour(100_000), "$3.60");
    check("claude-sonnet-4-5", for_an_hour(u64::MAX), "$4.50");
    check("gpt-4o", for_an_hour(500_000), "$2.50");
    check("gemini-2.5-pro", usage(200_000, 1_000, 0, 0), "$0.26");
    check("gemini-2.5-pro", usage(200_001, 1_000, 0, 0), "$0.515003");
    check("claude-haiku-5-5", usage(100_001, 0, 100_000, 0), "$0.005001");
    check("gpt-4o", usage(0, 0, 0, 0), "$0.00");
    check("gpt-4o", usage(1, 0, 0, 0), "$0.000003");
    for unknown in [
        "",
        ":",
        "gpt-4o-audio",
        "gpt-5.9",
        "my-gpt-4o",
        "llama3:8b",
        "gpt-4o-2024",
        "openai:",
        "gpt-4o:free",
    ] {
        check(unknown, million, "unknown");
    }
}

#[test]
fn own_prices_win_and_the_most_exact_of_them() {
    let prices = Prices::default()
        .with_price("gpt-*", dollars(1, 1))
        .with_price("gpt-4o*", dollars(2, 2))
        .with_price("azure:gpt-4o*", dollars(3, 3))
        .with_price("llama3:8b", dollars(4, 4))
        .with_price("free:*", Price::new(Cost::ZERO, Cost::ZERO));
    let check = |model: &str, expected: Option<u64>| {
        assert_eq!(prices.price(model).map(|price| price.input), expected.map(Cost::from_dollars), "{model}");
    };
    check("gpt-4o", Some(2));
    check("openai:gpt-4o-mini", Some(2));
    check("azure:gpt-4o-mini", Some(3));
    check("gpt-9", Some(1));
    check("ollama:llama3:8b", Some(4));
    check("llama3:8b", Some(4));
    check("free:gpt", Some(0));
    check("claude-opus-4-1", Some(15));
    check("mistral", None);
    let replaced = prices.with_price("gpt-*", dollars(9, 9));
    assert_eq!(replaced.price("gpt-9"), Some(dollars(9, 9)));
}

#[test]
fn dates_are_no_part_of_a_name() {
    let check = |name: &str, expected: &str| assert_eq!(undated(name), expected);
    check("gpt-4o-2024-11-20", "gpt-4o");
    check("claude-opus-4-5-20251101", "claude-opus-4-5");
    check("claude-opus-4@20250514", "claude-opus-4");
    check("claude-3-5-haiku-latest", "claude-3-5-haiku");
    check("gpt-4o", "gpt-4o");
    check("gpt-4o-2024", "gpt-4o-2024");
    check("gpt-4o-1234567é", "gpt-4o-1234567é");
    check("a-123-45-678", "a-123-45-678");
    check("", "");
}

#[test]
fn costs_display_exactly() {
    let check = |micros: u64, expected: &str| assert_eq!(Cost::from_micros(micros).to_string(), expected);
    check(0, "$0.00");
    check(12_300, "$0.0123");
    check(1, "$0.000001");
    check(1_500_000, "$1.50");
    check(1_000_000, "$1.00");
    check(10_000_000, "$10.00");
    check(123_456_789, "$123.456789");
    check(u64::MAX, "$18446744073709.551615");
    assert_eq!(format!("{:>8}", Cost::from_dollars(2)), "   $2.00");
}

#[test]
fn costs_saturate() {
    let most = Cost::from_micros(u64::MAX);
    assert_eq!(most + Cost::from_micros(1), most);
    assert_eq!([most, most].into_iter().sum::<Cost>(), most);
    assert_eq!(Cost::from_dollars(u64::MAX), most);
    let dear = Price::new(most, most).with_cache(most, most).with_long_prompt(LongPrompt::new(
        0,
        u64::MAX,
        u64::MAX,
    ));
    assert_eq!(dear.of(&usage(u64::MAX, u64::MAX, u64::MAX, u64::MAX)), most);
}

#[test]
fn prices_read_from_files() {
    let prices: Prices = toml::from_str(
        "\"a*\" = { input = 1, output = 2, cache_read = 3, cache_write = 4, long_prompt = { above = 5, input_percent = 6, output_percent = 7 } }",
    )
    .unwrap();
    let cost = Cost::from_micros;
    let expected =
        Price::new(cost(1), cost(2)).with_cache(cost(3), cost(4)).with_long_prompt(LongPrompt::new(5, 6, 7));
    assert_eq!(prices.price("abc"), Some(expected));
    assert_eq!(toml::from_str::<Prices>(&toml::to_string(&prices).unwrap()).unwrap(), prices);

    let fails = |text: &str| assert!(toml::from_str::<Prices>(text).is_err(), "{text}");
    fails("a = { input = 1 }");
    fails("a = { input = 1, output = 2, cached = 3 }");
    fails("a = { input = -1, output = 2 }");
    fails("a = { input = 1.5, output = 2 }");
    assert_eq!(serde_json::to_value(Cost::from_micros(7)).unwrap(), json!(7));
    assert_eq!(schemars::schema_for!(Cost).get("type"), Some(&json!("integer")));
}

proptest! {
    #[test]
    fn a_cost_is_never_below_its_exact_value(input in 0..1_000_000_u64, output in 0..1_000_000_u64, price in 0..100_000_000_u64) {
        let of = Price::new(Cost::from_micros(price), Cost::from_micros(price)).of(&Usage::new(input, output)).micros();
        let exact = (input + output) as f64 * price as f64 / 1e6;
        prop_assert!((of as f64) >= exact - 1e-3 && (of as f64) < exact + 1.001);
    }

    #[test]
    fn any_name_is_looked_up(name in ".{0,20}", digits in "[a-z]{0,3}[-@][0-9-]{7,11}") {
        let _ = Prices::default().with_price(name.clone(), dollars(1, 1)).price(&name);
        let _ = Prices::default().price(&digits);
    }
}
