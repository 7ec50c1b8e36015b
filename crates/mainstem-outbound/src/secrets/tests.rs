//! What is found, in which encoding, and what is left.

use super::*;

fn of(url: &str) -> Secrets {
    let mut secrets = Secrets::default();
    secrets.add_url(&Url::parse(url).unwrap());
    secrets
}

#[track_caller]
fn check(secrets: &Secrets, text: &str, expected: &str) {
    assert_eq!(secrets.redact(text), expected);
}

#[test]
fn credentials_are_found_in_every_encoding() {
    let secrets = of("http://me:p%2fss%22w%C3%B6rd@h/v1?sig=a%2Fb%2Fc%2Fd%2Fe");
    for form in [
        r#"p/ss"wörd"#,
        "p%2Fss%22w%C3%B6rd",
        "p%2fss%22w%c3%b6rd",
        "p/ss%22wörd",
        "%70%2F%73%73%22%77%C3%B6%72%64",
        "p%252Fss%2522w%25C3%25B6rd",
        r#"p\/ss\"wörd"#,
        r#"p/ss\u0022w\u00f6rd"#,
        r#"p/ss\\\"wörd"#,
        "p/ss&quot;w&#246;rd",
        "p&#x2f;ss&quot;w&#XF6;rd",
    ] {
        check(&secrets, &format!("no {form}."), "no [secret].");
        check(&secrets, &format!("http://me:{form}@h/"), "http://[secret]@h/");
    }
    check(&secrets, "Authorization: Basic bWU6cC9zcyJ3w7ZyZA==", "Authorization: Basic [secret]");
    check(&secrets, "bWU6cC9zcyJ3w7ZyZA, bWU6cC9zcyJ3w7ZyZA%3D%3D", "[secret], [secret]");
    check(&secrets, "a/b/c/d/e or a%2Fb%2Fc%2Fd%2Fe", "[secret] or [secret]");
    check(
        &secrets,
        "100% of ünïcode \\ & \\u12 &#x; &none; stays",
        "100% of ünïcode \\ & \\u12 &#x; &none; stays",
    );
    check(&of("http://me:a%3E%3E%3Eb%3F%3F%3F@h/"), "bWU6YT4+PmI/Pz8= bWU6YT4-PmI_Pz8", "[secret] [secret]");
}

#[test]
fn short_credentials_are_found_as_words() {
    let secrets = of("http://me:pw@h/v1?alt=sse");
    check(&secrets, "http://me:pw@h/v1?alt=sse", "http://[secret]@h/v1?alt=sse");
    check(&secrets, "the pw of me, dXNlcm1lOnB3, bWU6cHc=", "the [secret] of me, dXNlcm1lOnB3, [secret]");
    check(&secrets, "pwd, a pwned spw", "pwd, a pwned spw");
    check(&of("http://a-long-token@h/"), "a-long-token YS1sb25nLXRva2VuOg==", "[secret] [secret]");
    for url in ["http://h/", "http://me@h/"] {
        check(&of(url), "http://me@h/ tells me:", "http://me@h/ tells me:");
    }
}

#[test]
fn a_header_has_its_credentials() {
    let with = |value: &str| {
        let mut secrets = Secrets::default();
        secrets.add_header(value);
        secrets
    };
    check(&with("Bearer sk-12345678"), "Bearer sk-12345678, sk-12345678", "[secret], [secret]");
    let basic = with("Basic bWU6cGFzc3dvcmQ=");
    check(
        &basic,
        "Basic bWU6cGFzc3dvcmQ=; bWU6cGFzc3dvcmQ; me:password; passwords",
        "[secret]; [secret]; [secret]; [secret]s",
    );
    check(&with("Basic of-course"), "of-course", "[secret]");
    check(&with("short"), "short", "short");
}

#[test]
fn secrets_that_overlap_are_one() {
    let mut secrets = of("http://me:hunter22@h/?a=me:hunter22@h");
    secrets.add("hunter22@h/v1");
    check(&secrets, "http://me:hunter22@h/v1 hunter22hunter22", "http://[secret] [secret][secret]");
    assert_eq!(format!("{secrets:?}"), "Secrets(…)");
    // Bytes that are not UTF-8 are found as well, and leave text.
    check(&of("http://me:%BC1234567@h/"), "a %bc1234567, ü1234567", "a [secret], [secret]");
}

#[test]
fn variables_are_replaced() {
    #[track_caller]
    fn check(text: &str, expected: Result<&str, &str>) {
        let var = |name: &str| (name == "TOKEN").then(|| "s3cret-value".to_owned());
        let expanded = Secrets::default().expand(text, var).map_err(|error| error.to_string());
        assert_eq!(expanded.as_deref().map_err(String::as_str), expected, "{text}");
    }
    check("plain $HOME", Ok("plain $HOME"));
    check("Bearer ${TOKEN}", Ok("Bearer s3cret-value"));
    check("${TOKEN}${TOKEN}!", Ok("s3cret-values3cret-value!"));
    check("${NONE:-fallback}", Ok("fallback"));
    check("${TOKEN:-fallback}", Ok("s3cret-value"));
    check("${open", Ok("${open"));
    check("${NONE}", Err("the environment has no variable NONE; set it, or write ${NONE:-default}"));
}

#[test]
fn values_of_variables_are_secrets() {
    let mut secrets = Secrets::default();
    secrets
        .expand("${A} ${B}", |name| Some(if name == "A" { "long-enough" } else { "short" }.to_owned()))
        .unwrap();
    check(&secrets, "a long-enough, short text", "a [secret], short text");
}
