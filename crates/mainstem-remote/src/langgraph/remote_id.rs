//! The id of an event in the record: its run, frame and message, so that a later process finds the
//! run again and shows no message twice. Pure.

use std::fmt;

/// What an event is of. Its text is `<run>/<frame>/<message>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RemoteId<'a> {
    pub(super) run: &'a str,
    /// The frame of the run's stream; empty if it has none.
    pub(super) frame: &'a str,
    /// The message; empty if it has none.
    pub(super) message: &'a str,
}

impl<'a> RemoteId<'a> {
    /// Reads an id; `None` if it is not one of this protocol.
    pub(super) fn parse(id: &'a str) -> Option<Self> {
        let (run, rest) = id.split_once('/')?;
        let (frame, message) = rest.split_once('/')?;
        (!run.is_empty()).then_some(Self { run, frame, message })
    }
}

impl fmt::Display for RemoteId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run, frame, message } = self;
        write!(f, "{run}/{frame}/{message}")
    }
}

#[cfg(test)]
mod tests {
    //! Ids are read as they are written.

    use super::RemoteId;

    #[test]
    fn an_id_names_its_run_and_message() {
        #[track_caller]
        fn check(id: &str, expected: Option<(&str, &str, &str)>) {
            let parsed = RemoteId::parse(id);
            assert_eq!(parsed.map(|id| (id.run, id.frame, id.message)), expected);
            assert_eq!(parsed.map(|id| id.to_string()), expected.map(|_| id.to_owned()));
        }
        check("r/12-0/m", Some(("r", "12-0", "m")));
        check("r//m/n", Some(("r", "", "m/n")));
        check("r//", Some(("r", "", "")));
        check("r/m", None);
        check("/1/m", None);
    }
}
