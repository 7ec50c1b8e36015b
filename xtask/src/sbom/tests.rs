//! The bill of materials.

use std::path::Path;

use super::without_place;

#[test]
fn no_path_of_this_machine_is_in_it() {
    let bill = r#"{"bom-ref": "path+file:///home/me/mainstem/crates/mainstem#0.1.0"}"#;
    let clean = r#"{"bom-ref": "path+file:///crates/mainstem#0.1.0"}"#;
    assert_eq!(without_place(bill, Path::new("/home/me/mainstem")), clean);
}
