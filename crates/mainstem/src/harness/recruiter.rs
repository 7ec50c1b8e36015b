//! Who works in the next run: those of the last one, unless files have changed.

use std::{
    collections::BTreeMap,
    panic::resume_unwind,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use mainstem_session::{Crew, Crews};
use mainstem_spec::{AgentSpec, Watch};
use mainstem_tool::async_trait;
use tokio::task::spawn_blocking;

use super::{
    HarnessBuilder,
    builder::{Declared, Scope, Servers},
};
use crate::BuildError;

/// Looks, before each run, whether the files of its scope have changed, and reads them again if so.
#[derive(Clone)]
pub(super) struct Recruiter(Arc<Inner>);

struct Inner {
    builder: Arc<HarnessBuilder>,
    scope: Scope,
    /// Held while files are looked at and read, on threads that may block.
    known: Mutex<Known>,
    /// Held for a moment.
    present: Mutex<Present>,
}

struct Known {
    watch: Watch,
    declared: Declared,
}

#[derive(Clone)]
struct Present {
    crew: Arc<Crew>,
    /// The same agents with others as the root, by its id, as far as they were asked for.
    led: BTreeMap<String, Arc<Crew>>,
    warnings: Arc<[String]>,
}

impl Recruiter {
    /// Reads what is declared. Blocks on the file system.
    pub(super) fn new(builder: Arc<HarnessBuilder>, scope: Scope) -> Result<Self, BuildError> {
        // The look comes first, so that what changes while the files are read is seen before the
        // next run.
        let mut watch = scope.sources.watch();
        let (declared, said) = builder.declared(&scope, &mut watch, &Declared::default())?;
        let (crew, warnings) = builder.crew(&scope, &declared, None, None)?;
        let said = said.iter().chain(&warnings).map(ToString::to_string).collect();
        let present = Present { crew: Arc::new(crew), led: BTreeMap::new(), warnings: said };
        let (known, present) = (Mutex::new(Known { watch, declared }), Mutex::new(present));
        Ok(Self(Arc::new(Inner { builder, scope, known, present })))
    }

    /// Those who worked in the latest run, or will in the first.
    pub(super) fn crew(&self) -> Arc<Crew> {
        lock(&self.0.present).crew.clone()
    }

    /// What was wrong with the files when they were last read.
    pub(super) fn warnings(&self) -> Arc<[String]> {
        lock(&self.0.present).warnings.clone()
    }

    /// The MCP servers of those who work here.
    pub(super) fn servers(&self) -> &Servers {
        &self.0.scope.servers
    }

    /// Those who work where an agent of this id is the root.
    pub(super) async fn led_by(&self, id: String) -> Result<Arc<Crew>, BuildError> {
        let (this, present) = (self.clone(), self.present().await);
        if **present.root.id() == *id {
            return Ok(present);
        }
        // Nobody waits for it in vain: what it reads is there.
        let led = spawn_blocking(move || this.gather(&present, id)).await;
        led.unwrap_or_else(|panicked| resume_unwind(panicked.into_panic()))
    }

    fn gather(&self, present: &Arc<Crew>, id: String) -> Result<Arc<Crew>, BuildError> {
        let spec = leader(present, &id)?;
        if let Some(crew) = lock(&self.0.present).led.get(&id) {
            return Ok(crew.clone());
        }
        let Inner { builder, scope, known, .. } = &*self.0;
        let (crew, _) = builder.crew(scope, &lock(known).declared, Some(present), Some(spec))?;
        let crew = Arc::new(crew);
        let mut now = lock(&self.0.present);
        if Arc::ptr_eq(&now.crew, present) {
            now.led.insert(id, crew.clone());
        }
        Ok(crew)
    }

    fn look(&self) -> Arc<Crew> {
        let mut known = lock(&self.0.known);
        if known.watch.changed() {
            self.read_again(&mut known);
        }
        self.crew()
    }

    fn read_again(&self, known: &mut Known) {
        let Inner { builder, scope, .. } = &*self.0;
        let last = self.crew();
        let read = builder.declared(scope, &mut known.watch, &known.declared);
        let mut warnings = Vec::new();
        let crew = read.and_then(|(declared, said)| {
            known.declared = declared;
            warnings.extend(said.iter().map(ToString::to_string));
            builder.crew(scope, &known.declared, Some(&last), None)
        });
        let crew = match crew {
            Ok((crew, said)) => {
                warnings.extend(said.iter().map(ToString::to_string));
                Arc::new(crew)
            }
            Err(error) => {
                warnings.push(format!("error: {error}; all agents stay in effect as they were before"));
                last
            }
        };
        *lock(&self.0.present) = Present { crew, led: BTreeMap::new(), warnings: warnings.into() };
    }
}

#[async_trait]
impl Crews for Recruiter {
    async fn present(&self) -> Arc<Crew> {
        if self.0.scope.workspace.is_none() {
            return self.crew();
        }
        let this = self.clone();
        // A look that nobody waits for any more does no harm.
        spawn_blocking(move || this.look()).await.unwrap_or_else(|_| self.crew())
    }

    fn known(&self) -> Option<Arc<Crew>> {
        Some(self.crew())
    }
}

/// The agent of this id, if it may be a root.
pub(super) fn leader<'a>(crew: &'a Crew, id: &str) -> Result<&'a AgentSpec, BuildError> {
    if let Some(entry) = crew.catalog.get(id) {
        let spec = Some(&*entry.spec).filter(|spec| spec.is_runnable());
        return spec.ok_or_else(|| BuildError::OnlySpawned { id: id.to_owned() });
    }
    let all = crew.catalog.iter().map(|entry| &entry.spec);
    let known =
        all.filter(|spec| spec.is_listed() && spec.is_runnable()).map(|spec| spec.id.clone()).collect();
    Err(BuildError::UnknownAgent { id: id.to_owned(), known })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
