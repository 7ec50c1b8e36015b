//! The descendants of this process, and their usage.

use rustix::process::Pid;

use crate::limits::Usage;

#[cfg(not(target_os = "linux"))]
pub(crate) fn groups(inner: Pid) -> Vec<Pid> {
    vec![inner]
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn usage(_: Pid) -> Usage {
    Usage::default()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn memory(_: Pid) -> u64 {
    0
}

/// Returns the process groups of all processes below this one, except its own.
#[cfg(target_os = "linux")]
pub(crate) fn groups(_: Pid) -> Vec<Pid> {
    let own = rustix::process::getpgrp();
    let mut groups: Vec<_> = linux::descendants().iter().filter_map(linux::Process::group).collect();
    groups.sort_unstable_by_key(|group| group.as_raw_pid());
    groups.dedup();
    groups.retain(|group| *group != own);
    groups
}

/// Returns the usage of all descendants, including ended ones.
#[cfg(target_os = "linux")]
pub(crate) fn usage(inner: Pid) -> Usage {
    let ended = linux::Process::read("self").map(|own| own.cpu_of_children).unwrap_or_default();
    let mut usage = Usage { cpu: ended, ..Usage::default() };
    for process in linux::descendants() {
        usage.cpu += process.cpu + process.cpu_of_children;
        if process.is_running && process.pid != inner.as_raw_pid() {
            usage.memory += linux::memory(process.pid);
            usage.processes += 1;
        }
    }
    usage
}

/// Returns the memory of all descendants; memory that several share counts once. Slower than
/// [`usage`].
#[cfg(target_os = "linux")]
pub(crate) fn memory(inner: Pid) -> u64 {
    let running = |process: &linux::Process| process.is_running && process.pid != inner.as_raw_pid();
    linux::descendants()
        .iter()
        .filter(|process| running(process))
        .map(|process| linux::share(process.pid))
        .sum()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{fs, time::Duration};

    use rustix::process::Pid;

    /// A process, as `/proc` shows it.
    #[derive(Debug, PartialEq)]
    pub(super) struct Process {
        pub(super) pid: i32,
        parent: i32,
        /// -1 while the process is being reaped, 0 for a group outside of the process namespace.
        group: i32,
        /// Running, i.e. not a zombie.
        pub(super) is_running: bool,
        pub(super) cpu: Duration,
        /// CPU time of reaped children.
        pub(super) cpu_of_children: Duration,
    }

    impl Process {
        pub(super) fn read(pid: &str) -> Option<Self> {
            Self::parse(
                &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?,
                rustix::param::clock_ticks_per_second(),
            )
        }

        /// Returns the process group, unless the kernel does not tell it.
        pub(super) fn group(&self) -> Option<Pid> {
            // `from_raw` would take -1 for a group, and a signal to it would go to process 1.
            Pid::from_raw(self.group.max(0))
        }

        /// Parses a line of `stat`; the name, in parentheses, may have any characters.
        fn parse(stat: &str, ticks_per_second: u64) -> Option<Self> {
            let (head, rest) = stat.rsplit_once(") ")?;
            let pid = head.split(' ').next()?.parse().ok()?;
            let fields: Vec<_> = rest.split(' ').collect();
            let number = |field: usize| fields.get(field)?.parse::<i32>().ok();
            let time = |field: usize| {
                let ticks = fields.get(field)?.parse::<u64>().ok()?;
                Some(Duration::from_millis(ticks.saturating_mul(1000) / ticks_per_second.max(1)))
            };
            Some(Self {
                pid,
                parent: number(1)?,
                group: number(2)?,
                is_running: !matches!(*fields.first()?, "Z" | "X"),
                cpu: time(11)? + time(12)?,
                cpu_of_children: time(13)? + time(14)?,
            })
        }
    }

    /// Bytes of memory that no file backs, divided by the number of processes that share them. The
    /// kernel may refuse to tell.
    pub(super) fn share(pid: i32) -> u64 {
        let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        let line = rollup.lines().find_map(|line| line.strip_prefix("Pss_Anon:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kib.map_or_else(|| memory(pid), |kib| kib.saturating_mul(1 << 10))
    }

    /// Bytes of memory that no file backs, also those that are shared.
    pub(super) fn memory(pid: i32) -> u64 {
        let statm = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
        let mut pages = statm.split(' ').map(|pages| pages.parse().unwrap_or(0_u64));
        let (resident, shared) = (pages.nth(1).unwrap_or(0), pages.next().unwrap_or(0));
        resident.saturating_sub(shared).saturating_mul(rustix::param::page_size() as u64)
    }

    /// Returns all processes below this one.
    pub(super) fn descendants() -> Vec<Process> {
        let mut waiting = children(rustix::process::getpid().as_raw_pid());
        let mut found = Vec::new();
        while let Some(process) = waiting.pop() {
            waiting.extend(children(process.pid));
            found.push(process);
        }
        found
    }

    /// Returns the children of a process. Without the kernel's lists for each thread, it reads
    /// all processes.
    fn children(parent: i32) -> Vec<Process> {
        let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else { return Vec::new() };
        let lists: Result<Vec<_>, _> =
            threads.flatten().map(|thread| fs::read_to_string(thread.path().join("children"))).collect();
        match lists {
            Ok(lists) => {
                lists.iter().flat_map(|list| list.split_whitespace()).filter_map(Process::read).collect()
            }
            Err(_) if fs::exists("/proc/thread-self/children").unwrap_or(false) => Vec::new(),
            Err(_) => all().filter(|process| process.parent == parent).collect(),
        }
    }

    fn all() -> impl Iterator<Item = Process> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| Process::read(entry.file_name().to_str()?))
    }

    #[cfg(test)]
    mod tests;
}
