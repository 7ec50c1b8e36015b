//! The URL of data, serialized without an intermediate string.

use std::fmt;

use serde::{Serialize, Serializer};

/// A URL; for data in the message, a `data:` URL ([RFC
/// 2397](https://www.rfc-editor.org/rfc/rfc2397)).
#[derive(Debug)]
pub(crate) enum DataUrl<'a> {
    Url(&'a str),
    Data { media_type: &'a str, base64: &'a str },
}

impl fmt::Display for DataUrl<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.write_str(url),
            Self::Data { media_type, base64 } => write!(f, "data:{media_type};base64,{base64}"),
        }
    }
}

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
