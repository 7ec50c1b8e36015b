//! Restores the children of an earlier process.

use std::{collections::HashMap, sync::Arc};

use mainstem_message::SessionId;

use crate::{
    assembly::Assembly,
    catalog::CatalogEntry,
    fleet::Fleet,
    spawn::{
        lineage::Lineage,
        roster::{
            Carried,
            recorded::{RecordedChild, RecordedRoster},
        },
    },
};

impl Fleet {
    /// Restores the children of an earlier process as idle, each with the spec that it was spawned
    /// as. Sending to a child whose agent can't be built fails with the reason.
    pub fn restore(&self, assembly: &Assembly, recorded: RecordedRoster) {
        let mut lineages = HashMap::<SessionId, Arc<Lineage>>::new();
        let mut entries = HashMap::<Arc<str>, Option<CatalogEntry>>::new();
        let (children, specs) = recorded.into_parts();
        for RecordedChild { record, version, settings } in children {
            let source = &record.source;
            let spec = specs.get(&version).map(Arc::as_ref);
            let entry = || assembly.spawned_as(&source.agent_id, &version, spec);
            let Some(entry) = entries.entry(version.clone()).or_insert_with(entry).clone() else {
                self.roster.set_not_rebuilt(source);
                continue;
            };
            let lineage = Lineage::new(entry, lineages.get(&source.parent_session_id).cloned());
            lineages.insert(source.session_id.clone(), lineage.clone());
            let carried = settings.as_deref().map_or_else(Carried::default, Carried::from);
            self.roster.restore(record, lineage, carried);
        }
    }
}
