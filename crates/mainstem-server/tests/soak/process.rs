//! What this process holds.

use std::fs;

/// What has to stay flat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) files: usize,
    pub(crate) threads: usize,
    /// Resident memory.
    pub(crate) mib: usize,
}

impl Held {
    pub(crate) fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let figure = |name: &str| -> usize {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim_end_matches("kB").trim().parse().unwrap()
        };
        let files = fs::read_dir("/proc/self/fd").unwrap().count();
        Self { files, threads: figure("Threads:"), mib: figure("VmRSS:") / 1024 }
    }
}
