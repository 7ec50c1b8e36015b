//! What is built of declarations, kept up to date.

use std::{
    collections::BTreeMap,
    fmt,
    panic::resume_unwind,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use mainstem_spec::Watch;
use tokio::task::spawn_blocking;

use crate::{Code, DeclarationError, Declarations, Diagnostic, Inputs};

/// The agent that leads a variant of a value, and its model.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_structs, reason = "built with a literal")]
pub struct Lead {
    /// The id of the agent; `None` for the one that leads the value.
    pub agent: Option<String>,
    /// The name of the model; `None` for the agent's own.
    pub model: Option<String>,
}

/// Builds a value from declarations.
pub trait Build: Send + Sync + 'static {
    /// The value.
    type Output: Send + Sync + 'static;

    /// Why it can't be built.
    type Error: From<DeclarationError> + fmt::Display + Send + 'static;

    /// Builds the value; parts that can't be built stay as they were in `last`, with a diagnostic.
    /// May block.
    ///
    /// # Errors
    /// It can't be built as a whole. Before the first value that is fatal, later the last value
    /// stays in effect.
    fn build(
        &self,
        declarations: &Declarations,
        last: Option<&Self::Output>,
    ) -> Result<(Self::Output, Vec<Diagnostic>), Self::Error>;

    /// Builds the variant of `current` that is led in another way; `None` if `current` is. May
    /// block.
    ///
    /// # Errors
    /// The agent can't lead, or can't be built; the model is unknown.
    fn lead(
        &self,
        declarations: &Declarations,
        current: &Self::Output,
        lead: &Lead,
    ) -> Result<Option<Self::Output>, Self::Error>;
}

/// What is built of declarations. Before each use it looks whether files have changed, reads them
/// again if so, and stays as it was if they are broken. Cheap to clone; clones share the value.
pub struct Reloading<B: Build>(Arc<Inner<B>>);

struct Inner<B: Build> {
    inputs: Inputs,
    build: B,
    /// Locked while files are looked at and read, on threads that may block.
    read: Mutex<Read>,
    /// Locked for a moment.
    current: Mutex<Current<B::Output>>,
}

/// What is known of the files.
struct Read {
    watch: Watch,
    declarations: Declarations,
}

struct Current<T> {
    value: Arc<T>,
    /// The variants of the value, as they are requested.
    led: BTreeMap<Lead, Arc<T>>,
    diagnostics: Arc<[Diagnostic]>,
}

impl<B: Build> Reloading<B> {
    /// Reads the declarations and builds the first value. Blocks on the file system.
    ///
    /// # Errors
    /// The program's declarations are invalid, or the value can't be built.
    pub fn open(inputs: Inputs, build: B) -> Result<Self, B::Error> {
        // The look comes first, so that a change while files are read is seen before the next use.
        let mut watch = inputs.watch();
        let (declarations, mut found) = inputs.read_and_watch(&mut watch, &Declarations::default())?;
        let (value, more) = build.build(&declarations, None)?;
        found.extend(more);
        let current = Current { value: Arc::new(value), led: BTreeMap::new(), diagnostics: found.into() };
        let read = Read { watch, declarations };
        Ok(Self(Arc::new(Inner { inputs, build, read: Mutex::new(read), current: Mutex::new(current) })))
    }

    /// The builder of the value.
    pub fn builder(&self) -> &B {
        &self.0.build
    }

    /// The latest value, without a look at the files.
    pub fn current(&self) -> Arc<B::Output> {
        lock(&self.0.current).value.clone()
    }

    /// What was wrong with the declarations when they were last read.
    pub fn diagnostics(&self) -> Arc<[Diagnostic]> {
        lock(&self.0.current).diagnostics.clone()
    }

    /// Returns the value, read again if files have changed. A blocking thread checks the files.
    ///
    /// Cancel safe: if the future is dropped, the thread completes the check.
    pub async fn refreshed(&self) -> Arc<B::Output> {
        if self.0.inputs.is_fixed() {
            return self.current();
        }
        let this = self.clone();
        spawn_blocking(move || this.refresh()).await.unwrap_or_else(|_| self.current())
    }

    /// The value that is led in this way, read again if files have changed.
    ///
    /// Cancel safe, as [`refreshed`](Self::refreshed).
    ///
    /// # Errors
    /// As [`Build::lead`].
    ///
    /// # Panics
    /// Outside a tokio runtime; if the builder panics.
    pub async fn led_by(&self, lead: Lead) -> Result<Arc<B::Output>, B::Error> {
        let this = self.clone();
        let led = spawn_blocking(move || {
            let current = if this.0.inputs.is_fixed() { this.current() } else { this.refresh() };
            this.lead(&current, lead)
        });
        led.await.unwrap_or_else(|panicked| resume_unwind(panicked.into_panic()))
    }

    fn lead(&self, current: &Arc<B::Output>, lead: Lead) -> Result<Arc<B::Output>, B::Error> {
        if let Some(led) = lock(&self.0.current).led.get(&lead) {
            return Ok(led.clone());
        }
        let led = self.0.build.lead(&lock(&self.0.read).declarations, current, &lead)?;
        let Some(led) = led.map(Arc::new) else { return Ok(current.clone()) };
        let mut latest = lock(&self.0.current);
        if Arc::ptr_eq(&latest.value, current) {
            latest.led.insert(lead, led.clone());
        }
        Ok(led)
    }

    fn refresh(&self) -> Arc<B::Output> {
        let mut read = lock(&self.0.read);
        if read.watch.changed() {
            let last = self.current();
            let (value, diagnostics) = in_effect(self.read_again(&mut read, &last), last);
            *lock(&self.0.current) = Current { value, led: BTreeMap::new(), diagnostics };
        }
        self.current()
    }

    fn read_again(&self, read: &mut Read, last: &B::Output) -> Again<B::Output, B::Error> {
        let Inner { inputs, build, .. } = &*self.0;
        let declared = inputs.read_and_watch(&mut read.watch, &read.declarations);
        let (declarations, found) = match declared {
            Ok(read) => read,
            Err(error) => return Again { found: Vec::new(), built: Err(error.into()) },
        };
        read.declarations = declarations;
        Again { found, built: build.build(&read.declarations, Some(last)) }
    }
}

/// What came of reading again.
struct Again<T, E> {
    found: Vec<Diagnostic>,
    built: Result<(T, Vec<Diagnostic>), E>,
}

/// Decides what is in effect after files were read again: what was built, or else the last value.
fn in_effect<T, E: fmt::Display>(again: Again<T, E>, last: Arc<T>) -> (Arc<T>, Arc<[Diagnostic]>) {
    let Again { mut found, built } = again;
    let value = match built {
        Ok((value, more)) => {
            found.extend(more);
            Arc::new(value)
        }
        Err(error) => {
            let stays = format!("{error}; all agents stay in effect as they were before");
            found.push(Diagnostic::error(Code::NotReloaded, stays));
            last
        }
    };
    (value, found.into())
}

impl<B: Build> Clone for Reloading<B> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<B: Build> fmt::Debug for Reloading<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloading").field("inputs", &self.0.inputs).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
