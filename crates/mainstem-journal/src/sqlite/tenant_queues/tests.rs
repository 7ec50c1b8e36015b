//! The order of requests.

use mainstem_message::SessionId;
use tokio::sync::oneshot;

use super::{super::op::Answer, *};

/// Returns the order of requests, each a letter: `f` is a flush, which is durable and a barrier;
/// another letter asks whether the session of a tenant of that name is open.
fn order(made: &str, durable: bool) -> String {
    let mut queues = TenantQueues::default();
    for letter in made.chars() {
        let op = match letter {
            'f' => Op::Flush(Answer::new(oneshot::channel().0)),
            tenant => Op::IsOpen(
                SessionId::parse_scoped(&format!("{tenant}/s")).unwrap(),
                Answer::new(oneshot::channel().0),
            ),
        };
        queues.push(op);
    }
    let letter = |op: Op| match op {
        Op::IsOpen(session, _) => session.as_str().chars().next().unwrap(),
        _ => 'f',
    };
    let served: String =
        std::iter::from_fn(|| queues.pop(|op| durable || !op.is_durable())).map(letter).collect();
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
