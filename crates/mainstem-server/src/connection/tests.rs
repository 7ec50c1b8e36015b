//! Who has to leave when there are too many.

use super::*;

const GUESTS: usize = 256;

fn is_closed(connection: &Connection) -> bool {
    connection.0.close.is_cancelled()
}

#[test]
fn the_oldest_guest_makes_room_and_callers_stay() {
    let (guests, shares) = (Arc::new(Guests::new(GUESTS)), Shares::new(4, 1));
    let address = |last: u8| IpAddr::from([10, 0, 0, last]);
    let caller = guests.enter(address(1));
    assert!(caller.admit(&shares, &None) && caller.admit(&shares, &None));
    let mine: Vec<_> = (0..=GUESTS / 2).map(|_| guests.enter(address(1))).collect();
    assert_eq!(mine.iter().filter(|guest| is_closed(guest)).count(), 1);
    assert!(is_closed(&mine[0]) && !is_closed(&caller), "the oldest of that address");
    let others: Vec<_> = (0..GUESTS).map(|number| guests.enter(address(2 + (number / 100) as u8))).collect();
    assert_eq!(mine.iter().filter(|guest| is_closed(guest)).count(), mine.len(), "the oldest of all");
    assert!(others.iter().all(|guest| !is_closed(guest)));
    drop((mine, others));
    assert!(guests.lock().guests.is_empty(), "those that leave are forgotten");
    drop(caller);
    assert_eq!(shares.taken(), 0);
}
