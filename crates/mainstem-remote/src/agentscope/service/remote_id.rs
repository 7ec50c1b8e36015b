//! The id of an event in the record: its session, reply and block, so that a later process finds
//! the reply again and does not repeat blocks. Pure.

use std::fmt;

/// What an event is of. Its text is `<session>/<reply>/<part>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RemoteId<'a> {
    pub(super) session: &'a str,
    pub(super) reply: &'a str,
    /// The block, the call, or the result of a call; empty if it is none of them.
    pub(super) part: &'a str,
}

impl<'a> RemoteId<'a> {
    /// Reads an id; `None` if it is not one of the service.
    pub(super) fn parse(id: &'a str) -> Option<Self> {
        let (session, rest) = id.split_once('/')?;
        let (reply, part) = rest.split_once('/')?;
        (!session.is_empty() && !reply.is_empty()).then_some(Self { session, reply, part })
    }
}

impl fmt::Display for RemoteId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { session, reply, part } = self;
        write!(f, "{session}/{reply}/{part}")
    }
}
