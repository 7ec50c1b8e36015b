//! The arguments of a call in a request to a vendor.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

/// The arguments of a call as a model wrote them, if they are a JSON object; an empty text is an
/// empty object. Invalid arguments are wrapped, so that the model sees them: many servers parse the
/// arguments in a request, and fail the whole request over them.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(transparent)]
pub struct Arguments<'a>(Form<'a>);

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
enum Form<'a> {
    Written(&'a RawValue),
    Missing {},
    Slip { invalid_arguments: &'a str },
}

impl<'a> Arguments<'a> {
    /// Parses the text of a model.
    pub fn of(written: &'a str) -> Self {
        let trimmed = written.trim();
        Self(match serde_json::from_str(trimmed) {
            Ok(object) if trimmed.starts_with('{') => Form::Written(object),
            _ if trimmed.is_empty() => Form::Missing {},
            _ => Form::Slip { invalid_arguments: written },
        })
    }

    /// Returns them as text, for an API that takes the object in a string.
    pub fn as_text(&self) -> Cow<'a, str> {
        match self.0 {
            Form::Written(object) => object.get().into(),
            Form::Missing {} => "{}".into(),
            Form::Slip { invalid_arguments } => {
                serde_json::json!({ "invalid_arguments": invalid_arguments }).to_string().into()
            }
        }
    }
}

#[cfg(test)]
mod tests;
