//! The objects of one session: `SESSION/manifests/N` and `SESSION/files/HASH`.

use std::{collections::HashSet, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{
    Error, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, path::Path,
};

use super::manifest::{Entry, Manifest, hash};
use crate::WorkspaceError;

/// How many manifests stay.
const MANIFESTS: u64 = 3;

/// After how many manifests the files that none of them has are deleted.
const CLEANING: u64 = 32;

/// How long a file stays that no manifest has: another process may be about to create one.
const GRACE: Duration = Duration::from_secs(3600);

pub(super) struct Objects {
    store: Arc<dyn ObjectStore>,
    folder: String,
}

impl Objects {
    pub(super) fn new(store: Arc<dyn ObjectStore>, folder: String) -> Self {
        Self { store, folder }
    }

    /// Returns the newest manifest, with its number.
    pub(super) async fn newest(&self) -> Result<Option<(u64, Manifest)>, WorkspaceError> {
        let newest = self.manifests().await.map_err(unavailable)?.pop();
        let Some((number, meta)) = newest else { return Ok(None) };
        Ok(Some((number, self.manifest(&meta.location).await?)))
    }

    async fn manifest(&self, at: &Path) -> Result<Manifest, WorkspaceError> {
        let read = async { self.store.get(at).await?.bytes().await };
        let bytes = read.await.map_err(unavailable)?;
        let manifest = serde_json::from_slice::<Manifest>(&bytes)
            .map_err(|error| damaged(&format!("{at} is not a manifest: {error}")))?;
        match manifest.bad_path() {
            Some(path) => Err(damaged(&format!("{at} has the path {path:?}"))),
            None => Ok(manifest),
        }
    }

    /// Creates a manifest after that of this number, and returns its own; `None` if another process
    /// has created one.
    pub(super) async fn create(
        &self,
        after: u64,
        manifest: &Manifest,
    ) -> Result<Option<u64>, WorkspaceError> {
        let json = Bytes::from(serde_json::to_vec(manifest).unwrap_or_default());
        let mut number = after;
        loop {
            number += 1;
            let at = self.manifest_path(number);
            let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
            match self.store.put_opts(&at, PutPayload::from(json.clone()), options).await {
                Ok(_) if self.follows(after, number).await? => return Ok(Some(number)),
                Ok(_) => {
                    self.store.delete(&at).await.map_err(unavailable)?;
                    return Ok(None);
                }
                Err(Error::AlreadyExists { .. }) => {}
                Err(error) => return Err(unavailable(error)),
            }
            // An earlier attempt of this process may have come through without an answer.
            let there = self.manifest(&at).await?;
            if there == *manifest {
                return Ok(Some(number));
            }
            if there.writer != manifest.writer {
                return Ok(None);
            }
        }
    }

    /// Returns `true` if a manifest that was created is the newest, and follows the one before:
    /// other processes may have created later ones, and deleted that of its number, or the whole
    /// session.
    async fn follows(&self, after: u64, created: u64) -> Result<bool, WorkspaceError> {
        let manifests = self.manifests().await.map_err(unavailable)?;
        let has = |wanted: u64| manifests.iter().any(|(number, _)| *number == wanted);
        let newest = manifests.last().map(|(number, _)| *number);
        Ok(newest == Some(created) && (after == 0 || has(after)))
    }

    /// Returns the content of a file.
    pub(super) async fn file(&self, path: &str, entry: &Entry) -> Result<Bytes, WorkspaceError> {
        let read = async { self.store.get(&self.of(entry)).await?.bytes().await };
        let bytes = read.await.map_err(unavailable)?;
        match hash(&bytes) == entry.hash {
            true => Ok(bytes),
            false => Err(damaged(&format!("the content of {path:?} in {} has another hash", self.folder))),
        }
    }

    pub(super) async fn put(&self, entry: &Entry, bytes: Bytes) -> Result<(), WorkspaceError> {
        let put = self.store.put(&self.of(entry), PutPayload::from(bytes)).await;
        put.map(drop).map_err(unavailable)
    }

    /// Deletes old manifests, and now and then the files that no manifest has. What can't be
    /// deleted stays until the next time.
    pub(super) async fn clean(&self, number: u64) {
        let clean = async {
            if number > MANIFESTS {
                let old = self.manifest_path(number - MANIFESTS);
                match self.store.delete(&old).await {
                    Ok(()) | Err(Error::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            if number.is_multiple_of(CLEANING) { self.clean_files().await } else { Ok(()) }
        };
        if let Err(error) = clean.await {
            tracing::warn!(%error, session = self.folder, "old files of a session can't be deleted");
        }
    }

    async fn clean_files(&self) -> Result<(), Error> {
        let mut used = HashSet::new();
        for (_, meta) in self.manifests().await? {
            let bytes = self.store.get(&meta.location).await?.bytes().await?;
            let manifest: Manifest = serde_json::from_slice(&bytes).unwrap_or_default();
            used.extend(manifest.files.into_values().map(|entry| entry.hash));
        }
        let files: Vec<ObjectMeta> = self.store.list(Some(&self.path("files"))).try_collect().await?;
        // The store's clock: the newest object is not older than now.
        let newest = files.iter().map(|meta| meta.last_modified).max();
        let is_old = |meta: &ObjectMeta| {
            newest.is_some_and(|newest| (newest - meta.last_modified).to_std().is_ok_and(|age| age > GRACE))
        };
        let is_unused = |meta: &ObjectMeta| meta.location.filename().is_some_and(|hash| !used.contains(hash));
        let unused = files.into_iter().filter(|meta| is_unused(meta) && is_old(meta));
        self.delete_all(unused.map(|meta| meta.location)).await
    }

    /// Deletes all objects of the session, its manifests first: without them it has no files.
    pub(super) async fn delete(&self) -> Result<(), Error> {
        for part in ["manifests", "files"] {
            let objects: Vec<ObjectMeta> = self.store.list(Some(&self.path(part))).try_collect().await?;
            self.delete_all(objects.into_iter().map(|meta| meta.location)).await?;
        }
        Ok(())
    }

    async fn delete_all(&self, paths: impl Iterator<Item = Path> + Send) -> Result<(), Error> {
        let paths: Vec<_> = paths.map(Ok).collect();
        self.store.delete_stream(stream::iter(paths).boxed()).try_collect::<Vec<_>>().await.map(drop)
    }

    /// Returns the manifests, the newest last.
    async fn manifests(&self) -> Result<Vec<(u64, ObjectMeta)>, Error> {
        let list = self.store.list(Some(&self.path("manifests")));
        let number = |meta: ObjectMeta| Some((meta.location.filename()?.parse().ok()?, meta));
        let mut manifests: Vec<(u64, ObjectMeta)> =
            list.try_filter_map(|meta| async { Ok(number(meta)) }).try_collect().await?;
        manifests.sort_unstable_by_key(|(number, _)| *number);
        Ok(manifests)
    }

    fn of(&self, entry: &Entry) -> Path {
        self.path(&format!("files/{}", entry.hash))
    }

    fn manifest_path(&self, number: u64) -> Path {
        // Numbers are sorted as text.
        self.path(&format!("manifests/{number:020}"))
    }

    fn path(&self, below: &str) -> Path {
        Path::from_iter(format!("{}/{below}", self.folder).split('/'))
    }
}

/// Returns the error for the model; operators see more of it.
fn unavailable(error: Error) -> WorkspaceError {
    tracing::warn!(%error, "the store of sessions' files does not work");
    WorkspaceError::Refused(
        "the store of this session's files does not work at present; try it again later".to_owned(),
    )
}

fn damaged(what: &str) -> WorkspaceError {
    tracing::error!(what, "the stored files of a session are damaged");
    WorkspaceError::Refused(
        "the stored files of this session are damaged, so its files can't be used; tell the user".to_owned(),
    )
}
