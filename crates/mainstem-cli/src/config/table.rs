//! Tables of settings, each of which is declared once.
//!
//! [`table!`] takes a struct whose fields carry their flag (clap's attributes), their key (serde's)
//! and three policies in braces: the variable of the environment, what a project's file can do, and
//! what of it needs trust. The last two have no default, so that a key is in effect only once they
//! are decided.

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;

use super::{
    guarded::Guarded,
    keys::Key,
    listed::{List, Listed},
};

/// Reads a variable of the environment.
pub(super) type Var<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The file that values come from.
pub(crate) struct Location<'a> {
    pub(super) name: &'a str,
    pub(super) folder: &'a Path,
}

/// A value that several layers may set: flags, the environment, and files.
pub(crate) trait Layered {
    /// Fills what is unset from the layer below.
    #[must_use]
    fn or(self, below: Self) -> Self;

    /// Sets the file as the origin, and resolves paths relative to its folder.
    fn locate(&mut self, file: &Location<'_>);
}

/// A value of a project's file that the user's own settings limit.
pub(super) trait Narrow {
    /// Limits a project's value to what the user allows.
    #[must_use]
    fn narrowed_by(self, user: &Self) -> Self;
}

/// What a file has at a key.
pub(super) struct At<'a> {
    pub(super) raw: &'a Value,
    pub(super) folder: &'a Path,
}

impl At<'_> {
    pub(super) fn key(&self, name: &str) -> At<'_> {
        At { raw: &self.raw[name], folder: self.folder }
    }
}

/// A table of settings: a whole file, or a table in it.
pub(super) trait Table: Layered + Narrow + Sized {
    /// Returns what the environment sets.
    fn from_env(var: Var<'_>) -> Self;

    /// Splits a project's table into what applies at once and the parts that need trust.
    fn split(self, at: &At<'_>) -> (Self, Vec<Guarded<Self>>);

    /// Adds what is set to a list, with a prefix before each key.
    fn list(&self, prefix: &str, all: &mut Vec<Listed>);

    /// Returns the keys, in the order of their declaration.
    fn keys() -> Vec<Key>;
}

impl<T: Table> List for T {
    fn list(&self, key: &str, all: &mut Vec<Listed>) {
        Table::list(self, &format!("{key}."), all);
    }
}

impl<T: Layered> Layered for Option<T> {
    fn or(self, below: Self) -> Self {
        match (self, below) {
            (Some(value), Some(below)) => Some(value.or(below)),
            (Some(value), None) | (None, Some(value)) => Some(value),
            (None, None) => None,
        }
    }

    fn locate(&mut self, file: &Location<'_>) {
        self.iter_mut().for_each(|value| value.locate(file));
    }
}

/// A list without origins is that of one layer.
impl<T> Layered for Vec<T> {
    fn or(self, below: Self) -> Self {
        if self.is_empty() { below } else { self }
    }

    fn locate(&mut self, _file: &Location<'_>) {}
}

impl<K: Ord, V: Layered> Layered for BTreeMap<K, V> {
    fn or(self, mut below: Self) -> Self {
        for (key, value) in self {
            let value = match below.remove(&key) {
                Some(below) => value.or(below),
                None => value,
            };
            below.insert(key, value);
        }
        below
    }

    fn locate(&mut self, file: &Location<'_>) {
        self.values_mut().for_each(|value| value.locate(file));
    }
}

/// Declares a table of settings.
macro_rules! table {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $(
                $(#[$($attr:tt)*])*
                $field:ident: $type:ty {
                    $(env: $env:expr,)?
                    project: $project:expr,
                    trust: $trust:expr $(,)?
                }
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, clap::Args, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        $vis struct $name {
            $($(#[$($attr)*])* $vis $field: $type,)*
        }

        impl $crate::config::table::Layered for $name {
            fn or(self, below: Self) -> Self {
                Self { $($field: self.$field.or(below.$field),)* }
            }

            fn locate(&mut self, file: &$crate::config::table::Location<'_>) {
                $(self.$field.locate(file);)*
            }
        }

        impl $crate::config::table::Narrow for $name {
            fn narrowed_by(self, user: &Self) -> Self {
                Self { $($field: $project(self.$field, &user.$field),)* }
            }
        }

        impl $crate::config::table::Table for $name {
            fn from_env(_var: $crate::config::table::Var<'_>) -> Self {
                #[allow(clippy::needless_update, reason = "a table may have one key")]
                Self { $($($field: $env(_var),)?)* ..Self::default() }
            }

            fn split(
                self,
                at: &$crate::config::table::At<'_>,
            ) -> (Self, Vec<$crate::config::guarded::Guarded<Self>>) {
                let mut guarded = Vec::new();
                let plain = Self {
                    $($field: {
                        let key = stringify!($field);
                        let (plain, parts) = $trust.split(self.$field, &at.key(key));
                        guarded.extend(parts.into_iter().map(|part| part.within(key, |value| {
                            let mut table = Self::default();
                            table.$field = value;
                            table
                        })));
                        plain
                    },)*
                };
                (plain, guarded)
            }

            fn list(&self, prefix: &str, all: &mut Vec<$crate::config::listed::Listed>) {
                $({
                    let key = format!("{prefix}{}", stringify!($field));
                    $crate::config::listed::List::list(&self.$field, &key, all);
                })*
            }

            fn keys() -> Vec<$crate::config::keys::Key> {
                let flags = <Self as clap::Args>::augment_args(clap::Command::new(""));
                let mut keys = Vec::new();
                $({
                    let trust: &dyn $crate::config::guarded::TrustPolicy<$type> = &$trust;
                    let key = $crate::config::keys::Key {
                        path: stringify!($field).to_owned(),
                        about: $crate::config::keys::about(&[
                            $($crate::config::table::docs!($($attr)*)),*
                        ]),
                        flag: $crate::config::keys::flag(&flags, stringify!($field)),
                        variables: <[Vec<String>]>::concat(&[
                            $($crate::config::keys::variables(|var| {
                                let _: $type = $env(var);
                            }))?
                        ]),
                        guarded: trust.guarded(stringify!($field)),
                    };
                    keys.extend(key.or_within(trust.keys()));
                })*
                keys
            }
        }
    };
}

/// Returns the text of a doc comment, and an empty text for other attributes.
macro_rules! docs {
    (doc = $text:literal) => {
        $text
    };
    ($($other:tt)*) => {
        ""
    };
}

pub(super) use {docs, table};
