#![doc = include_str!("../README.md")]
//!
//! * [`Workspace`]: a directory that tools can't leave
//! * [`Workspace::tools`]: `read_file`, `write_file`, `edit_file`, `list_files`, `glob_files`,
//!   `grep_files`
//! * [`Workspace::shell`]: `shell`, for those who want it
//! * [`Workspaces`]: the same tools for many agents, each in a directory of its own; and a place
//!   for results that are too long
//! * `SessionFiles`, with the feature `object-store`: the files of sessions in a store, for a
//!   session that goes on in another process
//! * [`Layout`]: where things are in a workspace
//! * [`Protection`]: what agents do not write although it is in the workspace
//!
//! The tools do their work off the async threads. When a run is cancelled or a call is dropped,
//! that work ends at the next file or block.

mod artifacts;
mod blocking;
mod edit;
mod error;
mod layout;
mod path;
mod protection;
#[cfg(test)]
mod rig;
#[cfg(feature = "object-store")]
mod session_files;
#[cfg(unix)]
mod shell;
mod text;
mod tools;
mod walk;
mod window;
mod workspace;
mod workspaces;

pub use error::{WorkspaceError, Written};
pub use layout::Layout;
pub use protection::Protection;
#[cfg(feature = "object-store")]
pub use session_files::SessionFiles;
#[cfg(feature = "s3")]
pub use session_files::StoreError;
#[cfg(unix)]
pub use shell::ShellOptions;
pub use tools::FILE_TOOLS;
pub use workspace::Workspace;
pub use workspaces::Workspaces;
