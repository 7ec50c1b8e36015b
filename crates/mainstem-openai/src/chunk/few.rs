//! A list that nearly always holds at most one element, and then needs no memory of its own.

use std::{fmt, iter, marker::PhantomData, option, vec};

use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor},
};

/// Reads a JSON array, or `null` as nothing.
#[derive(Debug)]
pub(crate) struct Few<T> {
    first: Option<T>,
    rest: Vec<T>,
}

impl<T> Few<T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self { first: None, rest: Vec::new() }
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = iter::Chain<option::IntoIter<T>, vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.rest)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Few<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FewVisitor(PhantomData))
    }
}

struct FewVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for FewVisitor<T> {
    type Value = Few<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array or null")
    }

    fn visit_unit<E>(self) -> Result<Few<T>, E> {
        Ok(Few::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Few<T>, A::Error> {
        let mut few = Few { first: seq.next_element()?, rest: Vec::new() };
        while let Some(next) = seq.next_element()? {
            few.rest.push(next);
        }
        Ok(few)
    }
}
