//! The files of sessions in an object store, so that a session finds them at whatever process
//! continues it.
//!
//! `manifest` decides, `objects` speaks to the store, `local` to the file system.

mod local;
mod manifest;
mod objects;
#[cfg(feature = "s3")]
mod open;
#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use mainstem_message::{RunId, SessionId};
use mainstem_tool::ToolContext;
use object_store::ObjectStore;
use tokio::{sync::Mutex as AsyncMutex, time::Instant};
use uuid::Uuid;

#[cfg(feature = "s3")]
pub use self::open::StoreError;
use self::{
    local::{Folder, Seen},
    manifest::Manifest,
    objects::Objects,
};
use crate::{Workspace, WorkspaceError, blocking};

/// The sessions whose state is remembered. That of another one is read again from the store.
const MAX_REMEMBERED: usize = 4096;

/// How long a call may last, in which the state of its session must not be forgotten.
const LONGEST_CALL: Duration = Duration::from_secs(3600);

/// The runs of a session that are remembered.
const MAX_RUNS: usize = 64;

/// What a process is told that has lost its session.
const LOST: &str = "another process continues this session and has stored its files; the changes of this call are not stored";

/// Keeps the files of each session in an object store.
///
/// A session has a directory of its own, [`Layout::session`](crate::Layout::session). Before the
/// first call of a tool in a run the directory becomes what the store has; after each call that may
/// change files, the store gets what has changed. So a process that continues a session finds the
/// files of each call that has ended by itself. A call that was cut off or cancelled may leave
/// files in the local directory: the next call in the same process stores them, and another process
/// has what the store has.
///
/// Only regular files are kept, with their permission to be executed: no links and no empty
/// directories. At most 10 000 files a session, of 64 MiB each and 1 GiB together.
///
/// Each change is a new manifest in the store, which is only created if no other process has
/// created it: a process that has lost the session without knowing it gets an error and replaces
/// nothing.
///
/// Clones are the same.
#[derive(Clone)]
pub struct SessionFiles(Arc<Inner>);

struct Inner {
    store: Arc<dyn ObjectStore>,
    /// Names this process in manifests.
    writer: Arc<str>,
    prefix: String,
    sessions: Mutex<HashMap<SessionId, Remembered>>,
}

/// The state of a session, and when it was last asked for.
type Remembered = (Arc<AsyncMutex<State>>, Instant);

/// What is known of the files of a session.
#[derive(Default)]
struct State {
    /// The runs since the directory was last compared with the store.
    runs: HashSet<Option<RunId>>,
    /// The number of the manifest that the directory is at; `None` if it was not compared.
    number: Option<u64>,
    manifest: Manifest,
    seen: Seen,
}

impl SessionFiles {
    /// Keeps files in this store.
    pub fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self(Arc::new(Inner {
            store,
            writer: Uuid::new_v4().simple().to_string().into(),
            prefix: String::new(),
            sessions: Mutex::default(),
        }))
    }

    /// Returns the same store for the sessions of one tenant: two tenants may have sessions of one
    /// id.
    #[must_use]
    pub fn of_tenant(&self, tenant: &str) -> Self {
        let prefix = format!("{}tenants/{}/", self.0.prefix, crate::layout::component(tenant));
        let (store, writer) = (self.0.store.clone(), self.0.writer.clone());
        Self(Arc::new(Inner { store, writer, prefix, sessions: Mutex::default() }))
    }

    /// Deletes what the store has of a session, and its directory in this workspace. A directory on
    /// another machine stays until a session of this id is used there.
    ///
    /// # Errors
    /// If it can't be deleted; what is left is deleted by a further call.
    pub async fn delete(&self, root: &Workspace, session: &SessionId) -> Result<(), object_store::Error> {
        self.delete_stored(session).await?;
        let folder = Folder::new(root, session);
        let removed = tokio::task::spawn_blocking(move || folder.remove()).await;
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| object_store::Error::Generic {
            store: "local",
            source,
        };
        removed.map_err(|error| failed(error.into()))?.map_err(|error| failed(error.into()))
    }

    /// Deletes what the store has of a session.
    ///
    /// # Errors
    /// As for [`delete`](Self::delete).
    pub async fn delete_stored(&self, session: &SessionId) -> Result<(), object_store::Error> {
        self.sessions().remove(session);
        self.objects(session).delete().await
    }

    /// Makes the directory of the calling agent's session what the store has, once a run.
    pub(crate) async fn prepare(&self, cx: &ToolContext, root: &Workspace) -> Result<(), WorkspaceError> {
        let (session, run) = (session_of(cx), cx.run_id().cloned());
        let state = self.state(&session);
        let mut state = state.lock().await;
        if state.runs.contains(&run) {
            return Ok(());
        }
        let objects = self.objects(&session);
        let folder = Folder::new(root, &session);
        // Without a manifest the session has no files, whatever an earlier one of its id has left.
        let (number, manifest) = objects.newest().await?.unwrap_or_default();
        let is_there = number == 0 || folder.exists();
        match state.number {
            // A session of the same id that was deleted meanwhile has had the same number.
            Some(known) if is_there && known == number && state.manifest == manifest => {}
            // The answer to this process was lost: the directory is as new, or newer.
            Some(known) if is_there && known < number && manifest.writer == self.0.writer => {
                *state = State { number: Some(number), manifest, ..State::default() };
            }
            _ => {
                let seen = self.restore(cx, &objects, &folder, &manifest).await?;
                *state = State { number: Some(number), manifest, seen, ..State::default() };
            }
        }
        if state.runs.len() == MAX_RUNS {
            state.runs.clear();
        }
        state.runs.insert(run);
        Ok(())
    }

    async fn restore(
        &self,
        cx: &ToolContext,
        objects: &Objects,
        folder: &Folder,
        manifest: &Manifest,
    ) -> Result<Seen, WorkspaceError> {
        let (there, of) = (folder.clone(), manifest.clone());
        if let Some(seen) = blocking::blocking(cx, move |stop| there.compare(&of, stop)).await? {
            return Ok(seen);
        }
        let fresh = folder.fresh()?;
        for (path, entry) in &manifest.files {
            let (bytes, into) = (objects.file(path, entry).await?, fresh.clone());
            let (path, executable) = (path.clone(), entry.executable);
            blocking::blocking(cx, move |_| into.write(&path, &bytes, executable)).await?;
        }
        let (folder, of) = (folder.clone(), manifest.clone());
        blocking::blocking(cx, move |stop| {
            // A call that was dropped meanwhile must not replace what a later one has written.
            stop.check()?;
            folder.replace_by(&fresh)?;
            Ok(folder.compare(&of, stop)?.unwrap_or_default())
        })
        .await
    }

    /// Stores what has changed in the directory of the calling agent's session.
    pub(crate) async fn store_changes(
        &self,
        cx: &ToolContext,
        root: &Workspace,
    ) -> Result<(), WorkspaceError> {
        let session = session_of(cx);
        let state = self.state(&session);
        let mut state = state.lock().await;
        let (folder, objects) = (Folder::new(root, &session), self.objects(&session));
        let (there, seen) = (folder.clone(), state.seen.clone());
        let found = blocking::blocking(cx, move |stop| there.scan(&seen, stop)).await?;
        let mut next = Manifest { writer: self.0.writer.clone(), ..Manifest::default() };
        let mut seen = Seen::default();
        for (path, stamp) in found {
            let known = stamp.is_as_before.then(|| state.manifest.files.get(&path)).flatten();
            let entry = match known {
                Some(entry) => entry.clone(),
                None => {
                    let (there, name) = (folder.clone(), path.clone());
                    // A file that another call removes meanwhile is not stored.
                    let Some(bytes) = blocking::blocking(cx, move |_| there.read(&name)).await? else {
                        continue;
                    };
                    let entry = manifest::Entry::of(&bytes, stamp.executable);
                    if !state.manifest.has(&entry.hash) {
                        objects.put(&entry, bytes).await?;
                    }
                    entry
                }
            };
            seen.insert(path.clone(), stamp);
            next.files.insert(path, entry);
        }
        if next.files == state.manifest.files {
            state.seen = seen;
            return Ok(());
        }
        // Without a number the session was deleted since the call began.
        let created = match state.number {
            Some(after) => objects.create(after, &next).await?,
            None => None,
        };
        let Some(number) = created else {
            state.runs.clear();
            return Err(WorkspaceError::Refused(LOST.to_owned()));
        };
        (state.number, state.manifest, state.seen) = (Some(number), next, seen);
        objects.clean(number).await;
        Ok(())
    }

    fn objects(&self, session: &SessionId) -> Objects {
        let folder = crate::layout::component(session.as_str());
        Objects::new(self.0.store.clone(), format!("{}sessions/{folder}", self.0.prefix))
    }

    fn state(&self, session: &SessionId) -> Arc<AsyncMutex<State>> {
        let mut sessions = self.sessions();
        if sessions.len() >= MAX_REMEMBERED && !sessions.contains_key(session) {
            sessions.retain(|_, (state, used)| Arc::strong_count(state) > 1 || used.elapsed() < LONGEST_CALL);
        }
        let (state, used) =
            sessions.entry(session.clone()).or_insert_with(|| (Arc::default(), Instant::now()));
        *used = Instant::now();
        state.clone()
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Remembered>> {
        self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the session that the calling agent works for: the leading agent's.
pub(crate) fn session_of(cx: &ToolContext) -> SessionId {
    let root = cx.source().and_then(|source| source.path.split('/').next());
    root.map_or_else(|| cx.session_id().clone(), SessionId::from_lossy)
}

impl fmt::Debug for SessionFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionFiles").field("store", &self.0.store).finish_non_exhaustive()
    }
}
