//! The id of an event in the record: its task, so that a later process finds it again. Pure.

use std::fmt;

/// A task, or an event of it. Its text is `<task>#<event>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RemoteId<'a> {
    pub(super) task: &'a str,
    /// The number of the event, at a server with our extension.
    pub(super) event: Option<u64>,
}

impl<'a> RemoteId<'a> {
    /// Reads an id; `None` if it is not one of this protocol.
    pub(super) fn parse(id: &'a str) -> Option<Self> {
        let (task, event) = id.rsplit_once('#')?;
        let event = if event.is_empty() { None } else { Some(event.parse().ok()?) };
        Some(Self { task, event })
    }
}

impl fmt::Display for RemoteId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#", self.task)?;
        self.event.map_or(Ok(()), |event| write!(f, "{event}"))
    }
}

#[cfg(test)]
mod tests {
    //! Ids are read as they are written.

    use super::RemoteId;

    #[test]
    fn an_id_names_its_task() {
        #[track_caller]
        fn check(id: &str, expected: Option<(&str, Option<u64>)>) {
            let parsed = RemoteId::parse(id);
            assert_eq!(parsed.map(|id| (id.task, id.event)), expected);
            assert_eq!(parsed.map(|id| id.to_string()), expected.map(|_| id.to_owned()));
        }
        check("t#", Some(("t", None)));
        check("t#7", Some(("t", Some(7))));
        check("a#b#7", Some(("a#b", Some(7))));
        check("t", None);
        check("t#x", None);
    }
}
