//! Which payloads follow a template, and what they bring.

use super::*;

const VARYING: [&str; 2] = ["number", "noise"];

#[derive(Deserialize)]
struct Payload<'a> {
    #[serde(borrow)]
    text: Text<'a>,
}

/// Reads a payload, parses it if it must be, and teaches the template; returns whether it followed
/// and the deltas.
fn decode(template: &mut Template, payload: &str) -> (bool, Vec<ModelDelta>) {
    if let Some(delta) = template.read(payload) {
        return (true, vec![delta]);
    }
    let mut deltas = Deltas::new();
    let mut output = Output::new(&mut deltas);
    match serde_json::from_str::<Payload<'_>>(payload) {
        Ok(payload) => output.push(payload.text.0, ModelDelta::Text),
        Err(_) => output.push_whole(ModelDelta::NotStreaming { reason: "invalid".into() }),
    }
    output.teach(template, payload);
    (false, deltas.into())
}

fn text(text: &str) -> Vec<ModelDelta> {
    vec![ModelDelta::Text(text.to_owned())]
}

#[test]
fn a_payload_follows_if_it_differs_in_its_text_and_varying_fields_alone() {
    let first = r#"{"n":1,"text":"a","number":1,"noise":"x"}"#;
    let follows = [
        (r#"{"n":1,"text":"b","number":1,"noise":"x"}"#, "b"),
        (r#"{"n":1,"text":"a longer one","number":234,"noise":""}"#, "a longer one"),
        (r#"{"n":1,"text":"é\n\"\u00e9\\","number":-1.5e7,"noise":"}{"}"#, "é\n\"é\\"),
        (r#"{"n":1,"text":"\",\"number\":7","number":1,"noise":"x"}"#, "\",\"number\":7"),
    ];
    for (payload, expected) in follows {
        let mut template = Template::new(&VARYING);
        assert_eq!(decode(&mut template, first), (false, text("a")));
        assert_eq!(decode(&mut template, payload), (true, text(expected)), "{payload}");
    }
    let differs = [
        r#"{"n":2,"text":"b","number":1,"noise":"x"}"#,
        r#"{"n":1,"text":"b","number":1,"noise":"x"} "#,
        r#"{"n":1,"text":"b","number":1,"noise":"x","more":1}"#,
        r#"{"n":1,"text":"b","more":"c","number":1,"noise":"x"}"#,
        r#"{"n":1,"text":"b","number":null,"noise":"x"}"#,
        r#"{"n":1,"text":"b","number":"1","noise":"x"}"#,
        r#"{"n":1,"text":"b","number":1,"noise":"\u0041"}"#,
        r#"{"n":1,"text":"","number":1,"noise":"x"}"#,
        r#"{"n":1,"text":"\ud800","number":1,"noise":"x"}"#,
        r#"{"n":1,"text":"b"#,
        r#"{"n":1,"text":"b\"#,
        "",
    ];
    for payload in differs {
        let mut template = Template::new(&VARYING);
        decode(&mut template, first);
        assert!(!decode(&mut template, payload).0, "{payload}");
    }
}

#[test]
fn a_varying_field_is_one_of_an_object_and_not_a_part_of_a_string() {
    let mut template = Template::new(&VARYING);
    let payload = |quoted: u8| format!(r#"{{"other":"\"number\":{quoted}","text":"a"}}"#);
    decode(&mut template, &payload(1));
    assert!(decode(&mut template, &payload(1)).0);
    assert!(!decode(&mut template, &payload(2)).0);
}

#[test]
fn fields_within_others_and_after_spaces_vary_too() {
    let mut template = Template::new(&VARYING);
    let payload =
        |number: u8| format!(r#"{{"in": [{{"number": {number}, "noise": "{number}"}}], "text": "a"}}"#);
    decode(&mut template, &payload(1));
    assert_eq!(decode(&mut template, &payload(23)), (true, text("a")));
}

#[test]
fn a_text_with_escapes_or_none_makes_no_template() {
    for first in [r#"{"text":"a\n"}"#, r#"{"text":""}"#, "{"] {
        let mut template = Template::new(&[]);
        decode(&mut template, first);
        assert!(!decode(&mut template, r#"{"text":"b"}"#).0, "{first}");
        assert!(decode(&mut template, r#"{"text":"c"}"#).0, "{first}");
    }
}

#[test]
fn templates_that_no_payload_follows_are_given_up() {
    let mut template = Template::new(&[]);
    let payload = |n: u8| format!(r#"{{"n":{n},"text":"a"}}"#);
    for n in 0..ATTEMPTS {
        assert!(!decode(&mut template, &payload(n)).0);
    }
    assert!(decode(&mut template, &payload(ATTEMPTS - 1)).0, "the last one holds");
    (0..ATTEMPTS).for_each(|n| _ = decode(&mut template, &payload(n)));
    decode(&mut template, &payload(ATTEMPTS));
    assert!(!decode(&mut template, &payload(ATTEMPTS)).0, "none is made again");
}
