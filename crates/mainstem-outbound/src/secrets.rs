//! Finds secrets in texts that repeat them.
//!
//! A server or a proxy repeats what it was sent in the encoding of its answer. So a text is read
//! several times, as it is and with its escapes (of URLs, JSON and HTML) decoded, and each reading
//! knows where in the text a byte comes from.

use std::{fmt, iter::successors, ops::Range};

use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD, Engine as _};
use reqwest::Url;

/// A value shorter than this is a part of many words: credentials of this length are only found as
/// whole words, other values never.
const SHORT: usize = 8;

/// How often escapes are decoded: JSON within JSON within a URL.
const DEPTH: usize = 3;

/// A text names a variable that the environment lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the environment has no variable {name}; set it, or write ${{{name}:-default}}")]
#[non_exhaustive]
pub struct MissingVariable {
    /// The variable.
    pub name: String,
}

/// Values that no message may show.
#[derive(Clone, Default)]
pub struct Secrets(Vec<Vec<u8>>);

impl Secrets {
    /// Replaces `${NAME}` by the variable's value, which becomes a secret, and `${NAME:-default}`
    /// by the default if the variable is unset. Anything else that begins with `$` stays.
    ///
    /// # Errors
    /// A variable without a default is unset.
    pub fn expand(
        &mut self,
        text: &str,
        var: impl Fn(&str) -> Option<String>,
    ) -> Result<String, MissingVariable> {
        let (mut expanded, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, behind)) = after.split_once('}') else { break };
            expanded.push_str(before);
            let (name, default) = name.split_once(":-").map_or((name, None), |(name, or)| (name, Some(or)));
            match var(name) {
                Some(value) => {
                    expanded.push_str(&value);
                    self.add(&value);
                }
                None => {
                    let missing = || MissingVariable { name: name.to_owned() };
                    expanded.push_str(default.ok_or_else(missing)?);
                }
            }
            rest = behind;
        }
        expanded.push_str(rest);
        Ok(expanded)
    }

    /// Adds a value such as a key; nothing if it has fewer than 8 bytes.
    pub fn add(&mut self, value: &str) {
        if value.len() >= SHORT {
            self.0.push(value.into());
        }
    }

    /// Adds the values of others.
    pub fn extend(&mut self, others: &Self) {
        self.0.extend(others.0.iter().cloned());
    }

    /// Adds the value of a header, and the credentials in it if it is one for authentication.
    pub fn add_header(&mut self, value: &str) {
        self.add(value);
        let Some((scheme, credentials)) = value.split_once(' ') else { return };
        self.add(credentials);
        if scheme.eq_ignore_ascii_case("basic")
            && let Ok(pair) = BASE64_STANDARD.decode(credentials)
            && let Some(colon) = pair.iter().position(|byte| *byte == b':')
        {
            self.add_credentials(&pair[..colon], &pair[colon + 1..]);
        }
    }

    /// Adds user and password of a URL, and the values of its query.
    pub fn add_url(&mut self, url: &Url) {
        let decoded = |text: &str| Reading::new(text).decoded_by(percent).bytes;
        self.add_credentials(&decoded(url.username()), &decoded(url.password().unwrap_or_default()));
        url.query_pairs().for_each(|(_, value)| self.add(&value));
        let written = url.query().into_iter().flat_map(|query| query.split('&'));
        written.filter_map(|pair| pair.split_once('=')).for_each(|(_, value)| self.add(value));
    }

    /// Adds the password, and both as a request has them: joined, and in base64. A user without a
    /// password is a token, if it is long.
    fn add_credentials(&mut self, user: &[u8], password: &[u8]) {
        let secret = if password.is_empty() { user } else { password };
        if secret.len() < SHORT && password.is_empty() {
            return;
        }
        let pair = [user, b":", password].concat();
        let encoded = [BASE64_STANDARD, BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD];
        self.0.extend(encoded.map(|base64| base64.encode(&pair).into_bytes()));
        self.0.extend([pair, secret.to_owned()]);
    }

    /// Returns the text with `[secret]` in the place of each secret, also of one with
    /// percent-encoding or escapes of JSON or HTML.
    pub fn redact(&self, text: &str) -> String {
        if self.0.is_empty() {
            return text.to_owned();
        }
        let readings = successors(Some(Reading::new(text)), Reading::decoded).take(1 + DEPTH);
        let mut found: Vec<_> = readings.flat_map(|reading| self.found_in(&reading)).collect();
        found.sort_by_key(|range| range.start);
        let (mut shown, mut end) = (String::new(), 0);
        for range in found {
            let range = text.floor_char_boundary(range.start)..text.ceil_char_boundary(range.end);
            if range.start >= end {
                shown.push_str(&text[end..range.start]);
                shown.push_str("[secret]");
            }
            end = end.max(range.end);
        }
        shown + &text[end..]
    }

    fn found_in(&self, reading: &Reading) -> Vec<Range<usize>> {
        self.0.iter().flat_map(|secret| reading.find(secret)).collect()
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(…)")
    }
}

/// The bytes that a text stands for, and where in the text each of them begins.
struct Reading {
    bytes: Vec<u8>,
    /// One more than bytes: the last is the length of the text.
    starts: Vec<usize>,
}

impl Reading {
    fn new(text: &str) -> Self {
        Self { bytes: text.into(), starts: (0..=text.len()).collect() }
    }

    /// Returns the reading with its escapes decoded; `None` if it has none.
    fn decoded(&self) -> Option<Self> {
        let decoded = self.decoded_by(|rest| percent(rest).or_else(|| json(rest)).or_else(|| html(rest)));
        (decoded.bytes.len() < self.bytes.len()).then_some(decoded)
    }

    /// Decodes with a function that returns the bytes of the escape at the beginning of its
    /// argument, and the length of the escape.
    fn decoded_by(&self, escape: impl Fn(&[u8]) -> Option<(Vec<u8>, usize)>) -> Self {
        let (mut bytes, mut starts, mut at) = (Vec::new(), Vec::new(), 0);
        while let Some(byte) = self.bytes.get(at) {
            let (decoded, length) = escape(&self.bytes[at..]).unwrap_or_else(|| (vec![*byte], 1));
            starts.extend(decoded.iter().map(|_| self.starts[at]));
            bytes.extend(decoded);
            at += length;
        }
        starts.extend(self.starts.last());
        Self { bytes, starts }
    }

    /// Returns where in the text a secret is.
    fn find<'a>(&'a self, secret: &'a [u8]) -> impl Iterator<Item = Range<usize>> + 'a {
        let is_in_word =
            |at: Option<usize>| at.and_then(|at| self.bytes.get(at)).is_some_and(u8::is_ascii_alphanumeric);
        let found = self.bytes.windows(secret.len()).enumerate().filter(move |(_, bytes)| *bytes == secret);
        let found = found.map(|(start, _)| start..start + secret.len()).filter(move |range| {
            let is_part = is_in_word(range.start.checked_sub(1)) || is_in_word(Some(range.end));
            secret.len() >= SHORT || !is_part
        });
        found.map(|range| self.starts[range.start]..self.starts[range.end])
    }
}

/// `%2F`
fn percent(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    let digits = text.strip_prefix(b"%")?.get(..2)?;
    Some((vec![u8::try_from(number(digits, 16)?).ok()?], 3))
}

/// `\"` or `\u002f`
fn json(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    match text.strip_prefix(b"\\")? {
        [b'u', rest @ ..] => Some((character(number(rest.get(..4)?, 16)?)?, 6)),
        [byte, ..] if byte.is_ascii_punctuation() => Some((vec![*byte], 2)),
        _ => None,
    }
}

/// `&amp;`, `&#47;` or `&#x2F;`
fn html(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    const NAMED: [(&[u8], &[u8]); 5] =
        [(b"amp", b"&"), (b"lt", b"<"), (b"gt", b">"), (b"quot", b"\""), (b"apos", b"'")];
    let rest = text.strip_prefix(b"&")?;
    let name = &rest[..rest.iter().take(10).position(|byte| *byte == b';')?];
    let decoded = match name {
        [b'#', b'x' | b'X', digits @ ..] => character(number(digits, 16)?)?,
        [b'#', digits @ ..] => character(number(digits, 10)?)?,
        _ => NAMED.iter().find(|(known, _)| *known == name)?.1.to_owned(),
    };
    Some((decoded, name.len() + 2))
}

fn number(digits: &[u8], radix: u32) -> Option<u32> {
    let is_number = digits.iter().all(|digit| char::from(*digit).is_digit(radix));
    is_number.then(|| u32::from_str_radix(str::from_utf8(digits).ok()?, radix).ok()).flatten()
}

fn character(code: u32) -> Option<Vec<u8>> {
    Some(char::from_u32(code)?.to_string().into_bytes())
}

#[cfg(test)]
mod tests;
