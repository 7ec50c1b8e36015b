//! How many files the process may have open: sessions, connections and commands take some each.

/// More are not needed, and what goes through all numbers of files takes its time.
#[cfg(unix)]
const MOST: u64 = 65_536;

/// What every system allows that calls its limit unlimited.
#[cfg(unix)]
const PORTABLE: u64 = 10_240;

/// Raises the soft limit to the hard one, up to a point. Where that is refused, the limit stays as
/// it is.
#[cfg(unix)]
pub(crate) fn raise() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let set = |most: u64| {
        let wanted = maximum.map_or(most, |maximum| maximum.min(most));
        let is_enough = current.is_none_or(|current| current >= wanted);
        is_enough || setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).is_ok()
    };
    if !set(MOST) && !set(PORTABLE) {
        tracing::warn!("the limit of open files can't be raised");
    }
}

#[cfg(not(unix))]
pub(crate) fn raise() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::{Resource, getrlimit};

    #[test]
    fn the_soft_limit_is_raised_to_the_hard_one() {
        super::raise();
        let limit = getrlimit(Resource::Nofile);
        let most = limit.maximum.map_or(super::MOST, |maximum| maximum.min(super::MOST));
        assert!(limit.current.is_none_or(|current| current >= most), "{limit:?}");
    }
}
