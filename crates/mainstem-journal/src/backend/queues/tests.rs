//! The order of requests.

use super::*;

/// A letter, and its session.
struct Lettered(char, Option<SessionId>);

impl Request for Lettered {
    fn session(&self) -> Option<&SessionId> {
        self.1.as_ref()
    }

    fn is_urgent(&self) -> bool {
        true
    }

    fn is_durable(&self) -> bool {
        self.1.is_none()
    }
}

/// Returns the order of requests, each a letter: `f` is a flush, which is durable and a barrier;
/// another letter is about the session of a tenant of that name.
fn order(made: &str, durable: bool) -> String {
    let mut queues = TenantQueues::default();
    for letter in made.chars() {
        let session = (letter != 'f').then(|| SessionId::parse_scoped(&format!("{letter}/s")).unwrap());
        queues.push(Lettered(letter, session));
    }
    let letter = |request: Lettered| request.0;
    let served: String =
        std::iter::from_fn(|| queues.pop(|request| durable || !request.is_durable())).map(letter).collect();
    assert_eq!(queues.len(), made.len() - served.len());
    assert_eq!(queues.has_durable(), made.contains('f') && !served.contains('f'));
    served
}

#[test]
fn tenants_take_turns_and_a_barrier_waits_for_all_before_it() {
    let check = |made: &str, served: &str| assert_eq!(order(made, true), served, "{made}");
    check("", "");
    check("aaa", "aaa");
    check("aaaab", "abaaa");
    check("aaaabbc", "abcabaa");
    check("f", "f");
    check("aafa", "aafa");
    check("abbbfaa", "abababf");
    check("ffa", "ffa");
    assert_eq!(order("abfa", false), "ab");
    assert_eq!(order("fa", false), "");
}
