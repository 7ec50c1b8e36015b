//! Both sides read every delta of the server, for any load.

use tokio::net::TcpListener;

use super::*;
use crate::{sample::block_on, server};

async fn heard(kind: ClientKind, load: &Load) -> Result<u64> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let (mut started, mut deltas) = (0, 0);
    let read = async {
        let client = Client::connect(kind, &url, load.wire).await?;
        let mut seen = |seen: Observation<'_>| match seen {
            Observation::Start(_) => started += 1,
            Observation::Delta(text) => deltas += u64::from(text.trim().parse::<u64>().is_ok()),
        };
        client.run(load, &mut seen).await
    };
    tokio::select! {
        served = server::accept(listener) => served?,
        read = read => read?,
    }
    assert!(started > 0, "{kind:?} says when it starts");
    Ok(deltas)
}

#[test]
fn each_delta_is_heard() {
    let check = |load: Load| {
        for kind in [ClientKind::Bare, ClientKind::Provider, ClientKind::Mainstem] {
            let heard = block_on(heard(kind, &load)).unwrap();
            assert_eq!(heard, load.deltas(), "{kind:?} {load:?}");
        }
    };
    for wire in Wire::ALL {
        check(Load::new(1, 1).over(wire));
        check(Load::new(3, 200).over(wire));
    }
    check(Load::new(2, 65).at_depth(3));
    check(Load::new(20, 5).paced(Duration::from_millis(1)));
}

#[test]
fn a_scripted_fleet_says_the_same() {
    let check = |load: Load| {
        let sample = crate::sample::Sample::in_process(&load).unwrap();
        assert_eq!(sample.deltas, load.deltas(), "{load:?}");
    };
    check(Load::new(3, 200));
    check(Load::new(2, 65).at_depth(3));
}
