//! What a deserializer says of a value that does not fit, in the words of this crate's errors.

/// How like a known name has to be to one that is unknown, from 0 to 1, so that it is suggested.
const LIKE: f64 = 0.8;

/// What is expected, in Rust and in plain words.
const EXPECTED: [(&str, &str); 23] = [
    ("u8", "a whole number from 0 to 255"),
    ("u16", "a whole number from 0 to 65535"),
    ("u32", "a whole number from 0 to 4294967295"),
    ("u64", "a whole number of at least 0"),
    ("usize", "a whole number of at least 0"),
    ("i8", "a whole number from -128 to 127"),
    ("i16", "a whole number from -32768 to 32767"),
    ("i32", "a whole number from -2147483648 to 2147483647"),
    ("i64", "a whole number"),
    ("isize", "a whole number"),
    ("f32", "a number"),
    ("f64", "a number"),
    ("a nonzero u8", "a whole number from 1 to 255"),
    ("a nonzero u16", "a whole number from 1 to 65535"),
    ("a nonzero u32", "a whole number from 1 to 4294967295"),
    ("a nonzero u64", "a whole number of at least 1"),
    ("a nonzero usize", "a whole number of at least 1"),
    // What toml says of an enum.
    ("wanted string or table", "a string or a table"),
    // What `FromStr` says, of a parameter in an address.
    ("invalid digit found in string", "a whole number"),
    ("cannot parse integer from empty string", "a whole number"),
    ("number too large to fit in target type", "a smaller number"),
    ("number too small to fit in target type", "a larger number"),
    ("invalid float literal", "a number"),
];

/// Rewrites the message of an error of serde: without types of Rust, with the name that was most
/// likely meant, and without a place, which the caller knows better. A message of another form
/// stays as it is.
///
/// `key` is what a field is called: a key, a parameter.
///
/// ```
/// use mainstem_schema::misread;
///
/// let error = serde_json::from_str::<Vec<u8>>("[300]").unwrap_err().to_string();
/// assert_eq!(misread(&error, "key"), "expected a whole number from 0 to 255, got 300");
/// assert_eq!(
///     misread("unknown field `nmae`, expected `name` or `size`", "key"),
///     "unknown key `nmae`; did you mean `name`?",
/// );
/// ```
pub fn misread(message: &str, key: &str) -> String {
    let message = without_place(message.trim());
    if let Some(missing) = message.strip_prefix("missing field ") {
        return format!("{missing} is missing");
    }
    if let Some(twice) = message.strip_prefix("duplicate field ") {
        return format!("{twice} is there twice");
    }
    if message.starts_with("unknown field ") {
        return unknown(key, message);
    }
    if message.starts_with("unknown variant ") {
        return unknown("value", message);
    }
    if message.starts_with("data did not match any variant of untagged enum") {
        return "the value has another form than is expected here".to_owned();
    }
    if message == "provided string was not `true` or `false`" {
        return "expected true or false".to_owned();
    }
    if let Some((_, words)) = EXPECTED.iter().find(|(rust, _)| *rust == message) {
        return format!("expected {words}");
    }
    let kinds = ["invalid type: ", "invalid value: ", "invalid length "];
    let rest = kinds.iter().find_map(|kind| message.strip_prefix(kind));
    match rest.and_then(|rest| rest.rsplit_once(", expected ")) {
        Some((got, wanted)) if message.starts_with("invalid length ") => {
            format!("expected {}, got {got} items", expected(wanted))
        }
        Some((got, wanted)) => format!("expected {}, got {}", expected(wanted), found(got)),
        None => message.to_owned(),
    }
}

/// Cuts ` at line 1 column 2`.
fn without_place(message: &str) -> &str {
    let is_place = |rest: &str| {
        let numbers = rest.split_once(" column ").map(|(line, column)| [line, column]);
        numbers.is_some_and(|numbers| numbers.iter().all(|number| number.parse::<u64>().is_ok()))
    };
    match message.rsplit_once(" at line ") {
        Some((before, rest)) if is_place(rest) => before,
        _ => message,
    }
}

/// Says what is expected.
fn expected(wanted: &str) -> &str {
    if let Some((_, words)) = EXPECTED.iter().find(|(rust, _)| *rust == wanted) {
        return words;
    }
    match wanted {
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" | "map" => "an object",
        "unit" => "null",
        "string" | "path string" | "a borrowed string" | "a character" => "a string",
        wanted if wanted.starts_with("a tuple of size ") || wanted.starts_with("tuple ") => "a list",
        wanted if wanted.starts_with("struct ") || wanted.starts_with("internally tagged enum ") => {
            "an object"
        }
        wanted if wanted.starts_with("adjacently tagged enum ") => "an object",
        wanted if wanted.starts_with("enum ") || wanted == "variant identifier" => "a name",
        wanted => wanted.trim_start_matches("expected "),
    }
}

/// Says what there is, as it is written.
fn found(got: &str) -> &str {
    match got {
        "sequence" => return "a list",
        "map" => return "an object",
        "null" | "unit value" | "Option value" => return "null",
        _ => {}
    }
    let quoted = ["integer ", "floating point ", "boolean ", "character "];
    let quoted = quoted.iter().find_map(|kind| got.strip_prefix(kind));
    match quoted.and_then(|rest| rest.strip_prefix('`')?.split('`').next()) {
        Some(number) => number,
        None => got.strip_prefix("string ").unwrap_or(got),
    }
}

/// Names what is unknown, and what was meant, or all that is known.
fn unknown(what: &str, message: &str) -> String {
    let quoted: Vec<_> = message.split('`').skip(1).step_by(2).collect();
    let Some((wrong, known)) = quoted.split_first() else { return message.to_owned() };
    let near = known.iter().map(|known| (strsim::jaro_winkler(wrong, known), known));
    match near.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((likeness, near)) if likeness > LIKE => {
            format!("unknown {what} `{wrong}`; did you mean `{near}`?")
        }
        Some(_) => format!("unknown {what} `{wrong}`; known: {}", known.join(", ")),
        None => format!("unknown {what} `{wrong}`"),
    }
}

#[cfg(test)]
mod tests {
    //! Each form of message, as serde writes it.

    use std::{collections::BTreeMap, num::NonZeroU32};

    use serde::{Deserialize, de::DeserializeOwned};

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only errors are looked at")]
    struct Small {
        name: String,
        size: Option<NonZeroU32>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Colour {
        Green,
        Blue,
    }

    #[derive(Debug, Deserialize)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "only errors are looked at")]
    enum Either {
        Number(u8),
        Text(String),
    }

    #[track_caller]
    fn check<T: DeserializeOwned + std::fmt::Debug>(json: &str, expected: &str) {
        let error = serde_json::from_str::<T>(json).unwrap_err().to_string();
        assert_eq!(misread(&error, "key"), expected, "{error}");
    }

    #[test]
    fn each_form_of_message_is_said_plainly() {
        check::<String>("1", "expected a string, got 1");
        check::<String>("null", "expected a string, got null");
        check::<String>("[1]", "expected a string, got a list");
        check::<bool>("\"yes\"", "expected true or false, got \"yes\"");
        check::<Vec<u8>>("\"a, expected b\"", "expected a list, got \"a, expected b\"");
        check::<Vec<u8>>("[1, -1]", "expected a whole number from 0 to 255, got -1");
        check::<u64>("1.5", "expected a whole number of at least 0, got 1.5");
        check::<i64>("true", "expected a whole number, got true");
        check::<f64>("{}", "expected a number, got an object");
        check::<[u8; 2]>("[1]", "expected an array of length 2, got 1 items");
        check::<BTreeMap<String, u8>>("3", "expected an object, got 3");
        check::<Small>("3", "expected an object, got 3");
        check::<Small>("{}", "`name` is missing");
        check::<Small>("{\"name\": \"a\", \"name\": \"b\"}", "`name` is there twice");
        check::<Small>("{\"nmae\": 1}", "unknown key `nmae`; did you mean `name`?");
        check::<Small>("{\"colour\": 1}", "unknown key `colour`; known: name, size");
        check::<Small>(
            "{\"name\": \"a\", \"size\": 0}",
            "expected a whole number from 1 to 4294967295, got 0",
        );
        check::<Colour>("\"gren\"", "unknown value `gren`; did you mean `green`?");
        check::<Colour>("\"pink\"", "unknown value `pink`; known: green, blue");
        check::<Either>("[]", "the value has another form than is expected here");
        check::<()>("1", "expected null, got 1");
        // Other messages are returned unchanged.
        check::<u8>("", "EOF while parsing a value");
        assert_eq!(misread("meet at line seven", "key"), "meet at line seven");
        assert_eq!(misread("invalid digit found in string", "parameter"), "expected a whole number");
        assert_eq!(
            misread("provided string was not `true` or `false`", "parameter"),
            "expected true or false"
        );
    }
}
