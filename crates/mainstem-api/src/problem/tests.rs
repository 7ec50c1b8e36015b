//! Codes and problems as JSON and back.

use serde_json::json;

use super::*;

#[test]
fn every_code_has_a_word_of_its_own_and_a_status_with_a_name() {
    for code in Code::ALL {
        assert_eq!(Code::from(code.as_str()), *code);
        assert_ne!(title(code.status()), "Error", "{code}");
    }
    assert_eq!(Code::from("of_tomorrow"), Code::Other("of_tomorrow".into()));
}

#[test]
fn a_problem_reads_back() {
    let problem = Problem::new(Code::RunActive, "another run is active").with_member("run_id", "r");
    let expected = json!({
        "type": "/problems/run-active",
        "title": "Conflict",
        "status": 409,
        "detail": "another run is active",
        "code": "run_active",
        "run_id": "r",
    });
    assert_eq!(serde_json::to_value(&problem).unwrap(), expected);
    assert_eq!(serde_json::from_value::<Problem>(expected).unwrap(), problem);
}
