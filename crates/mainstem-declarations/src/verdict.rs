//! What a problem with an agent means: an error of the program, a fallback, or a diagnostic.

use mainstem_spec::{Origin, SpecSet};
use mainstem_subagent::{Catalog, CatalogEntry, CatalogError};

use crate::{Code, Diagnostic, Inputs};

/// What becomes of an agent with a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "each has its own effect on a catalog")]
pub enum Verdict {
    /// The program has to change: nothing is built.
    Fatal,
    /// The agent is available in spite of it.
    Report,
    /// The agent stays as it was before its file had the problem.
    UseLast,
    /// The agent is left out.
    LeaveOut,
}

/// Decides about a problem with an agent that code or a file declares. `has_last` says whether the
/// same file declared an agent before that could be built.
///
/// Code that declares an agent which can't be built is a mistake of the program. An unknown skill
/// never is: skills come and go with their folders.
#[must_use]
pub fn verdict(problem: &CatalogError, is_in_code: bool, has_last: bool) -> Verdict {
    let is_passing = matches!(problem, CatalogError::UnknownSkill { .. });
    match (is_in_code && !is_passing, problem.is_warning(), has_last) {
        (true, ..) => Verdict::Fatal,
        (false, true, _) => Verdict::Report,
        (false, false, true) => Verdict::UseLast,
        (false, false, false) => Verdict::LeaveOut,
    }
}

/// Applies the verdicts to a catalog: an agent whose file can't be built now stays as it was in
/// `last`. Returns a diagnostic for each problem and each fallback.
///
/// Reads files again for the places of problems; blocks on the file system.
///
/// # Errors
/// The first fatal problem.
pub fn settle(
    problems: Vec<CatalogError>,
    inputs: &Inputs,
    specs: &SpecSet,
    last: Option<&Catalog>,
    catalog: &mut Catalog,
) -> Result<Vec<Diagnostic>, CatalogError> {
    let mut found = Vec::new();
    for problem in problems {
        let id = problem.agent_id();
        let former = former(id, specs, last);
        let verdict = verdict(&problem, inputs.has_in_code(id), former.is_some());
        if verdict == Verdict::Fatal {
            return Err(problem);
        }
        found.push(Diagnostic::about_agent(&problem, specs));
        if let (Verdict::UseLast, Some(entry)) = (verdict, former) {
            let stays = format!("agent {:?} stays in effect as it was before", entry.spec.id);
            found.push(Diagnostic::warning(Code::Reverted, stays));
            catalog.keep(entry.clone());
        }
    }
    Ok(found)
}

/// Describes problems for a check of the files, which runs nothing: a file is in order if only
/// this machine lacks something, such as a provider's key.
///
/// Reads files again for the places of problems; blocks on the file system.
#[must_use]
pub fn examine(problems: &[CatalogError], specs: &SpecSet) -> Vec<Diagnostic> {
    let found = problems.iter().map(|problem| Diagnostic::about_agent(problem, specs));
    found.map(|found| if found.code() == Code::UnusableModel { found.as_warning() } else { found }).collect()
}

/// The agent that the same file declared before.
fn former<'a>(id: &str, specs: &SpecSet, last: Option<&'a Catalog>) -> Option<&'a CatalogEntry> {
    let spec = specs.get(id).filter(|spec| matches!(spec.origin, Origin::File(_)))?;
    last?.get(id).filter(|entry| entry.spec.origin == spec.origin)
}

#[cfg(test)]
mod tests;
