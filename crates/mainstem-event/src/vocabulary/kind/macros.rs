//! The macro that turns one table of kinds into the enum, its JSON and its schema.

use mainstem_message::Opaque;
use serde_json::{Map, Value};

use super::Discarded;

/// The JSON form of an optional field that is absent.
pub(crate) trait Absent {
    fn is_absent(&self) -> bool;
}

impl<T> Absent for Option<T> {
    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl Absent for Opaque {
    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

impl Absent for bool {
    fn is_absent(&self) -> bool {
        !self
    }
}

impl Absent for Discarded {
    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

/// Reads a field's value; the error names the field.
pub(crate) fn read_field<T: serde::de::DeserializeOwned>(
    fields: &mut Map<String, Value>,
    tag: &str,
    name: &str,
) -> Result<T, String> {
    let value = fields.remove(name).ok_or_else(|| format!("{tag} has no field {name:?}"))?;
    serde_json::from_value(value).map_err(|error| format!("field {name:?} of {tag}: {error}"))
}

/// Reads a field that may be missing or null.
pub(crate) fn read_optional<T: serde::de::DeserializeOwned + Default>(
    fields: &mut Map<String, Value>,
    tag: &str,
    name: &str,
) -> Result<T, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(T::default()),
        Some(_) => read_field(fields, tag, name),
    }
}

macro_rules! write_field {
    ($map:ident, $json:literal, $field:ident) => {
        $map.serialize_entry($json, $field)?
    };
    ($map:ident, $json:literal, $field:ident, optional) => {
        if !$crate::vocabulary::kind::macros::Absent::is_absent($field) {
            $map.serialize_entry($json, $field)?
        }
    };
}

macro_rules! read_field {
    ($fields:ident, $tag:literal, $json:literal) => {
        $crate::vocabulary::kind::macros::read_field($fields, $tag, $json)?
    };
    ($fields:ident, $tag:literal, $json:literal, optional) => {
        $crate::vocabulary::kind::macros::read_optional($fields, $tag, $json)?
    };
}

macro_rules! is_durable {
    (durable) => {
        true
    };
    ($($class:ident)?) => {
        false
    };
}

macro_rules! is_content {
    (content) => {
        true
    };
    ($($class:ident)?) => {
        false
    };
}

macro_rules! is_required {
    () => {
        true
    };
    (optional) => {
        false
    };
}

macro_rules! kinds {
    ($(
        $(#[doc = $doc:literal])*
        $variant:ident = $tag:literal $(#[$attribute:ident])? $($class:ident)? { $(
            $(#[doc = $field_doc:literal])*
            $field:ident: $type:ty = $json:literal $($optional:ident)?
        ),* $(,)? }
    )*) => {
        /// What happened. The JSON `type` is the name in capitals, the fields stand beside the
        /// envelope.
        ///
        /// Kinds are added over time: match those you know and pass over the rest. A `type` that
        /// this version does not know reads as [`Unknown`](Self::Unknown) and is written back as it
        /// came.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum EventKind {
            $(
                $(#[doc = $doc])*
                #[doc = ""]
                #[doc = concat!("`", $tag, "`")]
                $(#[$attribute])?
                $variant { $( $(#[doc = $field_doc])* $field: $type, )* },
            )*
            /// A kind of a later version.
            Unknown {
                /// Its `type`.
                name: String,
                /// Its fields, without the envelope's.
                value: serde_json::Map<String, serde_json::Value>,
            },
        }

        impl EventKind {
            /// The names of all kinds, in the order of the table.
            pub const NAMES: &'static [&'static str] = &[$($tag),*];

            /// Returns the `type` on the wire.
            pub fn name(&self) -> &str {
                match self {
                    $( Self::$variant { .. } => $tag, )*
                    Self::Unknown { name, .. } => name,
                }
            }

            /// Returns `true` if a log with a [`Record`](crate::Record) shows it to readers only
            /// once it is committed: endings, changes of tasks, and requests to people and callers
            /// with their answers.
            pub fn is_durable(&self) -> bool {
                match self {
                    $( Self::$variant { .. } => is_durable!($($class)?), )*
                    Self::Unknown { .. } => false,
                }
            }

            /// Returns `true` for beginnings, ends, calls and requests; `false` for content that is
            /// streamed in pieces.
            pub fn is_lifecycle(&self) -> bool {
                match self {
                    $( Self::$variant { .. } => !is_content!($($class)?), )*
                    Self::Unknown { .. } => true,
                }
            }

            pub(crate) fn write_fields<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                match self {
                    $( Self::$variant { $($field),* } => {
                        $( write_field!(map, $json, $field $(, $optional)?); )*
                    } )*
                    Self::Unknown { value, .. } => {
                        for (name, value) in value {
                            map.serialize_entry(name, value)?;
                        }
                    }
                }
                Ok(())
            }

            /// Takes a kind's fields out of an event's; the rest belongs to a later version.
            pub(crate) fn read(
                tag: &str,
                fields: &mut serde_json::Map<String, serde_json::Value>,
            ) -> Result<Self, String> {
                Ok(match tag {
                    $( $tag => Self::$variant { $( $field: read_field!(fields, $tag, $json $(, $optional)?), )* }, )*
                    _ => Self::Unknown { name: tag.to_owned(), value: std::mem::take(fields) },
                })
            }

            /// Returns a row for each kind: its name, meaning, and fields.
            pub(crate) fn table(generator: &mut schemars::SchemaGenerator) -> Vec<Row> {
                vec![$( Row {
                    tag: $tag,
                    doc: concat!($($doc, "\n"),*),
                    fields: vec![$( Field {
                        name: $json,
                        doc: concat!($($field_doc, "\n"),*),
                        required: is_required!($($optional)?),
                        schema: generator.subschema_for::<$type>(),
                    } ),*],
                } ),*]
            }
        }
    };
}
