//! What this process holds.

use std::fs;

/// What has to stay flat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// Open files that are not sockets.
    pub(crate) files: usize,
    /// Both ends of the connections of clients in this process, among others.
    pub(crate) sockets: usize,
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
        let open =
            fs::read_dir("/proc/self/fd").unwrap().flatten().filter_map(|fd| fs::read_link(fd.path()).ok());
        let (sockets, files): (Vec<_>, Vec<_>) =
            open.partition(|file| file.to_string_lossy().starts_with("socket:"));
        let (files, sockets) = (files.len(), sockets.len());
        Self { files, sockets, threads: figure("Threads:"), mib: figure("VmRSS:") / 1024 }
    }
}
