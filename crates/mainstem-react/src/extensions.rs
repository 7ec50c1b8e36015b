//! Values of the embedding application, found by their type.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
    sync::Arc,
};

/// Cheap to clone; adding a value to a clone leaves the others as they are.
#[derive(Clone, Default)]
pub(crate) struct Extensions(Arc<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl Extensions {
    pub(crate) fn insert<T: Any + Send + Sync>(&mut self, value: Arc<T>) {
        Arc::make_mut(&mut self.0).insert(TypeId::of::<T>(), value);
    }

    pub(crate) fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.value(TypeId::of::<T>())?.downcast().ok()
    }

    pub(crate) fn value(&self, of: TypeId) -> Option<Arc<dyn Any + Send + Sync>> {
        self.0.get(&of).cloned()
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Extensions({})", self.0.len())
    }
}
