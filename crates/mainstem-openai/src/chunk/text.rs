//! Two fields that are strings in the standard and have further forms at some servers.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::Value;

/// The text of a model: a string, `null`, or [Mistral's] list of text and thinking parts.
///
/// [Mistral's]: https://docs.mistral.ai/capabilities/reasoning
#[derive(Debug, Default)]
pub(crate) enum Content<'a> {
    #[default]
    Nothing,
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Debug, Deserialize)]
pub(crate) struct Part<'a> {
    pub(crate) text: Option<String>,
    #[serde(borrow, default)]
    pub(crate) thinking: Content<'a>,
}

impl<'a> Content<'a> {
    /// Returns all text, without thinking.
    pub(crate) fn into_text(self) -> Cow<'a, str> {
        match self {
            Self::Nothing => Cow::Borrowed(""),
            Self::Text(text) => text,
            Self::Parts(parts) => parts.into_iter().filter_map(|part| part.text).collect(),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a list of parts or null")
    }

    fn visit_unit<E>(self) -> Result<Content<'de>, E> {
        Ok(Content::Nothing)
    }

    fn visit_str<E>(self, text: &str) -> Result<Content<'de>, E> {
        Ok(Content::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Content<'de>, E> {
        Ok(Content::Text(Cow::Borrowed(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content<'de>, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = seq.next_element()? {
            parts.push(part);
        }
        Ok(Content::Parts(parts))
    }
}

/// The arguments of a call: a string of JSON, or at some servers (TGI, builds of llama.cpp) the
/// JSON object itself.
#[derive(Debug, Default)]
pub(crate) struct Arguments<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Arguments<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ArgumentsVisitor)
    }
}

struct ArgumentsVisitor;

impl<'de> Visitor<'de> for ArgumentsVisitor {
    type Value = Arguments<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, an object or null")
    }

    fn visit_unit<E>(self) -> Result<Arguments<'de>, E> {
        Ok(Arguments::default())
    }

    fn visit_str<E>(self, text: &str) -> Result<Arguments<'de>, E> {
        Ok(Arguments(Cow::Owned(text.to_owned())))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Arguments<'de>, E> {
        Ok(Arguments(Cow::Borrowed(text)))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Arguments<'de>, A::Error> {
        Value::deserialize(MapAccessDeserializer::new(map))
            .map(|object| Arguments(Cow::Owned(object.to_string())))
    }
}
