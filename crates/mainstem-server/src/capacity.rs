//! How much there is room for of what keeps a file of the process open.

/// Files that are left to the journal, to agents and to the commands that they run.
const RESERVED: u64 = 128;

/// The most of each, however many files may be open, and the least, however few.
pub(crate) const SESSIONS: (u64, u64) = (16, 1024);
pub(crate) const CONNECTIONS: (u64, u64) = (16, 1024);
pub(crate) const GUESTS: (u64, u64) = (8, 256);

/// How many there are at once, at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Capacity {
    /// Open sessions, each of which holds the file that locks it.
    pub(crate) sessions: usize,
    /// Connections whose callers are known.
    pub(crate) connections: usize,
    /// Connections that have not shown a token.
    pub(crate) guests: usize,
}

impl Capacity {
    /// What this process has room for.
    pub(crate) fn of_process() -> Self {
        Self::of(open_files())
    }

    /// Returns the capacity of a process with this limit of open files: half is for sessions, a
    /// quarter for connections.
    fn of(open_files: u64) -> Self {
        let free = open_files.saturating_sub(RESERVED);
        let part = |of: u64, (least, most): (u64, u64)| usize::try_from((free / of).clamp(least, most));
        // None is more than 1024.
        let part = |of, bounds| part(of, bounds).unwrap_or(usize::MAX);
        Self { sessions: part(2, SESSIONS), connections: part(4, CONNECTIONS), guests: part(8, GUESTS) }
    }
}

/// How many files the process may have open.
#[cfg(unix)]
fn open_files() -> u64 {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[cfg(not(unix))]
fn open_files() -> u64 {
    u64::MAX
}

#[cfg(test)]
mod tests {
    //! What fits into how many files.

    use super::*;

    #[test]
    fn all_that_there_is_room_for_fits_into_the_files_that_may_be_open() {
        #[track_caller]
        fn check(open_files: u64, sessions: usize, connections: usize, guests: usize) {
            assert_eq!(Capacity::of(open_files), Capacity { sessions, connections, guests });
        }
        check(u64::MAX, 1024, 1024, 256);
        check(20_000, 1024, 1024, 256);
        check(1024, 448, 224, 112);
        check(256, 64, 32, 16);
        check(64, 16, 16, 8);
        for open_files in 200..20_000 {
            let Capacity { sessions, connections, guests } = Capacity::of(open_files);
            assert!(((sessions + connections + guests) as u64) < open_files, "{open_files}");
        }
    }
}
