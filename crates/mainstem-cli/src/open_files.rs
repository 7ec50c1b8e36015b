//! The limit of open files: sessions, connections and commands use some each.

/// The highest limit that is set. Code that iterates over all file numbers takes time in
/// proportion.
#[cfg(unix)]
const MOST: u64 = 65_536;

/// The limit on systems that report it as unlimited.
#[cfg(unix)]
const PORTABLE: u64 = 10_240;

/// Raises the soft limit to the hard one, up to the highest. If the system refuses, the limit
/// stays.
#[cfg(unix)]
pub(crate) fn raise() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let set = |most: u64| {
        let target = maximum.map_or(most, |maximum| maximum.min(most));
        let is_enough = current.is_none_or(|current| current >= target);
        is_enough || setrlimit(Resource::Nofile, Rlimit { current: Some(target), maximum }).is_ok()
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
