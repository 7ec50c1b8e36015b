//! Limits of what holds a file open, from the process's limit of open files.

/// Files that are reserved for the journal, for agents and for the commands that they run.
const RESERVED: u64 = 128;

/// The bounds of each limit: the least, and the most.
pub(crate) const SESSIONS: (u64, u64) = (16, 1024);
pub(crate) const CONNECTIONS: (u64, u64) = (16, 1024);
pub(crate) const GUESTS: (u64, u64) = (8, 256);

/// How many can be open at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Capacity {
    /// Open sessions, each of which holds the file that locks it.
    pub(crate) sessions: usize,
    /// Connections whose callers are known.
    pub(crate) connections: usize,
    /// Connections without a valid token.
    pub(crate) guests: usize,
}

impl Capacity {
    /// Returns the capacity of this process.
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

/// Returns the process's limit of open files.
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
    //! The capacity for limits of open files.

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
