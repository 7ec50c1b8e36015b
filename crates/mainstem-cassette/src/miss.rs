//! The message about a request that is not on the tape: the nearest ones, and the differences.

use super::{
    canonical::{same, target},
    difference::differences,
    exchange::TapeRequest,
    mode::VARIABLE,
};

/// How many differences are listed.
const LISTED: usize = 5;

/// Returns the sentence. A provider's error quotes some 200 characters of it, so the most helpful
/// part comes first.
pub(super) fn sentence(tape: &str, requested: &TapeRequest, recorded: &[(usize, TapeRequest)]) -> String {
    let what = format!("{tape} has no response to {} ({VARIABLE}=record records anew)", requested.line());
    format!("{what}: {}", nearest(requested, recorded))
}

fn nearest(requested: &TapeRequest, recorded: &[(usize, TapeRequest)]) -> String {
    let mut alike = recorded.iter().filter(|(_, one)| same(one, requested)).map(|(line, _)| *line);
    if let Some(line) = alike.next_back() {
        return format!("line {line} is the same, but has been played; each line is played once");
    }
    let to = |requested: &TapeRequest| (requested.method.clone(), target(&requested.path).0.to_owned());
    let candidates = recorded.iter().filter(|(_, one)| to(one) == to(requested));
    let compared = candidates.map(|(line, one)| (line, differences(one, requested)));
    match compared.min_by_key(|(_, differences)| differences.len()) {
        Some((line, differences)) => {
            let listed = differences.iter().take(LISTED).map(ToString::to_string).collect::<Vec<_>>();
            let more = differences.len().saturating_sub(LISTED);
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            format!("line {line} is nearest, but {}{more}", listed.join("; "))
        }
        None => elsewhere(recorded),
    }
}

fn elsewhere(recorded: &[(usize, TapeRequest)]) -> String {
    if recorded.is_empty() {
        return "nothing is on the tape".to_owned();
    }
    let listed = recorded.iter().take(LISTED).map(|(line, one)| format!("{} (line {line})", one.line()));
    format!("it has {}", listed.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests;
