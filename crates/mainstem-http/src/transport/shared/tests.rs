//! Which calls get which stack.

use tokio::runtime::Builder;

use super::*;

#[test]
fn a_runtime_has_one_stack_until_its_last_holder_ends() {
    let [one, other] = [(); 2].map(|()| Builder::new_current_thread().build().unwrap());
    let of_one = || one.block_on(async { Stack::of_runtime() });
    let stack = of_one();
    assert!(Arc::ptr_eq(&stack, &of_one()));
    assert!(!Arc::ptr_eq(&stack, &other.block_on(async { Stack::of_runtime() })));
    assert!(!Arc::ptr_eq(&stack, &Stack::of_runtime()), "outside of a runtime");
    let ended = Arc::downgrade(&stack);
    drop(stack);
    assert!(ended.upgrade().is_none());
    let _stack = of_one();
    assert_eq!(SHARED.lock().unwrap().len(), 1, "runtimes without a stack are forgotten");
}

#[test]
fn calls_beyond_the_streams_of_a_connection_get_a_client_of_their_own() {
    let stack = Stack::new();
    let client = || stack.client().unwrap();
    let mut calls: Vec<_> = (0..CALLS).map(|_| client()).collect();
    assert!(calls.iter().all(|call| Arc::ptr_eq(call, &calls[0])));
    let next = client();
    assert!(!Arc::ptr_eq(&next, &calls[0]));
    calls.pop();
    assert!(Arc::ptr_eq(&client(), &calls[0]), "the first client with room");
}
