//! The shapes, and the failures of each.

use super::*;
use crate::{Auth, Url};

fn server() -> Server {
    Server::new(Url::parse("https://api.openai.com/v1").unwrap(), Auth::Bearer)
}

/// Checks the kind, whether it is retryable, and the message.
fn check(status: u16, body: &str, expected: &str) {
    let error = ServerError::of(status, body).refusal(&server(), StatusCode::from_u16(status).unwrap());
    let retry = if error.is_retryable() { ", retry" } else { "" };
    let (code, status) = (error.kind().code(), error.status().unwrap_or(0));
    let sentence = error.to_string();
    let sentence = sentence.strip_prefix("api.openai.com answered ").expect(&sentence);
    assert_eq!(format!("{code} {status}{retry}: {sentence}"), expected);
}

/// Data that a service can't read is known by each vendor's words; other refusals are not about it.
#[test]
fn data_that_a_service_can_t_read_is_recognised() {
    let check = |status: u16, body: &str, expected: bool| {
        let error = ServerError::of(status, body).refusal(&server(), StatusCode::from_u16(status).unwrap());
        assert_eq!(error.is_about_data(), expected, "{body}");
    };
    let image =
        "You uploaded an unsupported image. Please make sure your image has of one the following formats";
    check(400, &format!(r#"{{"error":{{"message":"{image}","code":"invalid_image_format"}}}}"#), true);
    check(
        400,
        r#"{"error":{"message":"Invalid content type. image_url is only supported by certain models."}}"#,
        true,
    );
    check(404, r#"{"error":{"message":"No endpoints found that support image input","code":404}}"#, true);
    let anthropic = |message: &str| {
        format!(r#"{{"type":"error","error":{{"type":"invalid_request_error","message":"{message}"}}}}"#)
    };
    check(400, &anthropic("Could not process image"), true);
    check(400, &anthropic("messages.0.content.1.image: image exceeds 5 MB maximum: 6 bytes > 5 bytes"), true);
    check(400, &anthropic("max_tokens: Field required"), false);
    let gemini =
        r#"{"error":{"code":400,"message":"Unable to process input image.","status":"INVALID_ARGUMENT"}}"#;
    check(400, gemini, true);
    check(500, gemini, false);
    // The image may be there the next time.
    check(400, r#"{"error":{"message":"no","code":"failed_to_download_image"}}"#, false);
}

#[test]
fn openai_and_those_who_follow_it() {
    check(
        401,
        r#"{"error":{"message":"Incorrect API key provided: sk-12***89.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#,
        "auth 401: 401 Unauthorized: Incorrect API key provided: sk-12***89. (check the API key and its rights)",
    );
    check(
        404,
        r#"{"error":{"message":"The model `gpt-9` does not exist","type":"invalid_request_error","param":null,"code":"model_not_found"}}"#,
        "not_found 404: 404 Not Found: The model `gpt-9` does not exist (check the model's name and the base URL)",
    );
    check(
        429,
        r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
        "quota_exceeded 429: 429 Too Many Requests: You exceeded your current quota (check plan and billing; waiting does not help)",
    );
    check(
        400,
        r#"{"error":{"message":"This model's maximum context length is 128000 tokens.","param":"messages","code":"context_length_exceeded"}}"#,
        "context_overflow 400: 400 Bad Request: This model's maximum context length is 128000 tokens.",
    );
    check(
        500,
        include_str!("refused.body"),
        "server_error 500, retry: 500 Internal Server Error: The model produced output that does not match the expected peg-native format",
    );
    check(
        400,
        r#"{"error":{"code":400,"message":"request (13392 tokens) exceeds the available context size (8192 tokens)","type":"exceed_context_size_error","n_ctx":8192}}"#,
        "context_overflow 400: 400 Bad Request: request (13392 tokens) exceeds the available context size (8192 tokens)",
    );
    check(
        400,
        r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","param":null,"code":400}"#,
        "context_overflow 400: 400 Bad Request: This model's maximum context length is 4096 tokens.",
    );
}

#[test]
fn anthropic() {
    let body = |kind: &str, message: &str| {
        format!(
            r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}},"request_id":"req_011"}}"#
        )
    };
    check(529, &body("overloaded_error", "Overloaded"), "overloaded 529, retry: 529: Overloaded");
    check(
        400,
        &body("invalid_request_error", "prompt is too long: 207310 tokens > 200000 maximum"),
        "context_overflow 400: 400 Bad Request: prompt is too long: 207310 tokens > 200000 maximum",
    );
    check(
        400,
        &body("invalid_request_error", "input length and `max_tokens` exceed context limit: 9 + 8 > 10"),
        "context_overflow 400: 400 Bad Request: input length and `max_tokens` exceed context limit: 9 + 8 > 10",
    );
    check(
        400,
        &body("invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
        "quota_exceeded 400: 400 Bad Request: Your credit balance is too low to access the Anthropic API. (check plan and billing; waiting does not help)",
    );
    check(
        413,
        &body("request_too_large", "Request exceeds the maximum size"),
        "context_overflow 413: 413 Payload Too Large: Request exceeds the maximum size",
    );
}

#[test]
fn other_shapes() {
    // Ollama since 0.40 passes on what its llama.cpp says.
    let inner = r#"{\"error\":{\"code\":400,\"message\":\"request (2622 tokens) exceeds the available context size (512 tokens)\",\"n_ctx\":512}}"#;
    check(
        400,
        &format!(r#"{{"error":"{inner}"}}"#),
        r#"context_overflow 400: 400 Bad Request: {"error":{"code":400,"message":"request (2622 tokens) exceeds the available context size (512 tokens)","n_ctx":512}}"#,
    );
    check(
        400,
        r#"{"error":"This model's maximum prompt length is 131072 but the request contains 140000 tokens."}"#,
        "context_overflow 400: 400 Bad Request: This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    );
    check(
        400,
        r#"{"error":{"message":"The decoder prompt (length 9000) is longer than the maximum model length of 8192.","type":"BadRequestError","code":400}}"#,
        "context_overflow 400: 400 Bad Request: The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
    );
    check(
        429,
        r#"{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 43210.","type":"tokens","code":"rate_limit_exceeded"}}"#,
        "context_overflow 429: 429 Too Many Requests: Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 43210.",
    );
    check(
        400,
        r#"{"error":"the input length exceeds the context length"}"#,
        "context_overflow 400: 400 Bad Request: the input length exceeds the context length",
    );
    check(
        422,
        r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","user"]}]},"type":"invalid_request_error"}"#,
        r#"invalid_request 422: 422 Unprocessable Entity: {"detail":[{"type":"extra_forbidden","loc":["body","user"]}]}"#,
    );
    check(
        400,
        r#"[{"error":{"code":400,"message":"Request contains an invalid argument.","status":"INVALID_ARGUMENT"}}]"#,
        "invalid_request 400: 400 Bad Request: Request contains an invalid argument.",
    );
    check(
        502,
        r#"{"error":{"code":502,"message":"Provider returned error","metadata":{"raw":"upstream is down"}}}"#,
        "server_error 502, retry: 502 Bad Gateway: Provider returned error: upstream is down",
    );
    check(
        503,
        r#"{"error":"model is loading"}"#,
        "overloaded 503, retry: 503 Service Unavailable: model is loading",
    );
    check(403, r#"{"detail":"no"}"#, "auth 403: 403 Forbidden: no (check the API key and its rights)");
    check(504, "upstream\r\n timed   out", "timeout 504, retry: 504 Gateway Timeout: upstream timed out");
    check(
        502,
        "<html>\n<head><title>502 Bad Gateway</title></head>",
        "server_error 502, retry: 502 Bad Gateway: <html> <head><title>502 Bad Gateway</title></head>",
    );
    check(500, "", "server_error 500, retry: 500 Internal Server Error");
    check(
        308,
        "",
        "invalid_request 0: 308 Permanent Redirect (set the base URL to where it points; redirects are not followed)",
    );
}

#[test]
fn googles_details_say_more_than_its_status() {
    let error = |code: u16, message: &str, status: &str, details: &str| {
        format!(
            r#"{{"error":{{"code":{code},"message":"{message}","status":"{status}","details":[{details}]}}}}"#
        )
    };
    let typed =
        |name: &str, rest: &str| format!(r#"{{"@type":"type.googleapis.com/google.rpc.{name}",{rest}}}"#);
    check(
        400,
        &error(400, "No.", "INVALID_ARGUMENT", &typed("ErrorInfo", r#""reason":"API_KEY_INVALID""#)),
        "auth 400: 400 Bad Request: No. (check the API key and its rights)",
    );
    let quota = |id: &str| typed("QuotaFailure", &format!(r#""violations":[{{"quotaId":"{id}"}}]"#));
    check(
        429,
        &error(429, "Enough.", "RESOURCE_EXHAUSTED", &quota("GenerateRequestsPerDayPerProjectPerModel")),
        "quota_exceeded 429: 429 Too Many Requests: Enough. (check plan and billing; waiting does not help)",
    );
    check(
        429,
        &error(429, "Enough.", "RESOURCE_EXHAUSTED", &quota("GenerateRequestsPerMinutePerProjectPerModel")),
        "rate_limited 429, retry: 429 Too Many Requests: Enough.",
    );
    let too_long = "The input token count (1300000) exceeds the maximum number of tokens allowed (1048576).";
    check(
        400,
        &error(400, too_long, "INVALID_ARGUMENT", ""),
        &format!("context_overflow 400: 400 Bad Request: {too_long}"),
    );

    let wait = |delay: &str, expected: Option<u64>| {
        let info =
            format!("{}, {}", quota("PerMinute"), typed("RetryInfo", &format!(r#""retryDelay":{delay}"#)));
        let body = error(429, "Enough.", "RESOURCE_EXHAUSTED", &info);
        let refused = ServerError::of(429, &body).refusal(&server(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(refused.retry_after(), expected.map(Duration::from_millis), "{delay}");
        let broken =
            ServerError::read(&serde_json::from_str(&body).unwrap()).unwrap().interruption(&server());
        assert_eq!(broken.retry_after(), expected.map(Duration::from_millis), "{delay}");
    };
    wait(r#""57.5s""#, Some(57_500));
    wait(r#""0s""#, Some(0));
    for nonsense in ["1", "null", r#""""#, r#""s""#, r#""-1s""#, r#""1m""#, r#""1e300s""#, r#""NaNs""#] {
        wait(nonsense, None);
    }
}

#[test]
fn the_context_window_is_read_from_a_conversation_that_is_too_long() {
    let check = |body: &str, expected: Option<u64>| {
        let refused = ServerError::of(400, body).refusal(&server(), StatusCode::BAD_REQUEST);
        assert_eq!(refused.context_window(), expected, "{body}");
    };
    let openai = |message: &str| {
        format!(
            r#"{{"error":{{"message":"{message}","code":"context_length_exceeded","param":"messages"}}}}"#
        )
    };
    let text =
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 9 tokens.";
    check(&openai(text), Some(128_000));
    check(&openai("Your input exceeds the context window of this model."), None);
    let vllm = "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens";
    check(&format!(r#"{{"object":"error","message":"{vllm}","code":400}}"#), Some(4096));
    let llama = "request (13392 tokens) exceeds the available context size (8192 tokens), try increasing it";
    let llama = |more: &str| {
        format!(r#"{{"error":{{"code":400,"message":"{llama}","type":"exceed_context_size_error"{more}}}}}"#)
    };
    check(&llama(""), Some(8192));
    check(&llama(r#","n_prompt_tokens":13392,"n_ctx":4096"#), Some(4096));
    let anthropic = |text: &str| {
        format!(r#"{{"type":"error","error":{{"type":"invalid_request_error","message":"{text}"}}}}"#)
    };
    check(&anthropic("prompt is too long: 207310 tokens > 200000 maximum"), Some(200_000));
    check(
        &anthropic("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
        Some(200_000),
    );
    check(&anthropic("messages.0: 3 > 2"), None);
    let gemini = "The input token count (1300000) exceeds the maximum number of tokens allowed (1048576).";
    let google =
        |text: &str| format!(r#"{{"error":{{"code":400,"message":"{text}","status":"INVALID_ARGUMENT"}}}}"#);
    check(&google(gemini), Some(1_048_576));
    check(&google("exceeds the maximum number of tokens allowed (x)"), None);
    let huge = "maximum context length is 99999999999999999999999 tokens";
    check(&openai(huge), None);
}

/// Too many bytes differ from too many tokens: the data of a conversation leaves it for them.
#[test]
fn a_request_with_too_many_bytes_is_known() {
    let check = |status: u16, body: &str, expected: (ErrorKind, bool)| {
        let error = ServerError::of(status, body);
        let error = error.refusal(&server(), StatusCode::from_u16(status).unwrap());
        assert_eq!((error.kind(), error.is_too_large()), expected, "{body}");
    };
    let overflow = ErrorKind::ContextOverflow;
    check(413, "<html>Request Entity Too Large</html>", (overflow, true));
    check(413, r#"{"type":"error","error":{"type":"request_too_large","message":"m"}}"#, (overflow, true));
    let gemini = "Request payload size exceeds the limit: 20971520 bytes.";
    let gemini = format!(r#"{{"error":{{"code":400,"message":"{gemini}","status":"INVALID_ARGUMENT"}}}}"#);
    check(400, &gemini, (overflow, true));
    let groq = r#"{"error":{"message":"Request too large for model `m` on tokens per minute","type":"tokens","code":"rate_limit_exceeded"}}"#;
    check(413, groq, (overflow, false));
    check(400, r#"{"error":{"message":"m","code":"context_length_exceeded"}}"#, (overflow, false));
}

#[test]
fn what_is_said_in_mid_answer_has_a_kind_too() {
    let check = |json: &str, expected: ErrorKind| {
        let error = ServerError::read(&serde_json::from_str(json).unwrap()).expect(json);
        assert_eq!(error.interruption(&server()).kind(), expected, "{json}");
    };
    check(r#"{"error":{"code":500,"message":"m","type":"server_error"}}"#, ErrorKind::Server);
    check(r#"{"error":{"code":429,"message":"m"},"choices":[]}"#, ErrorKind::RateLimited);
    check(r#"{"error":{"code":"rate_limit_exceeded","message":"m"}}"#, ErrorKind::RateLimited);
    check(r#"{"error":{"message":"m","type":"overloaded_error"}}"#, ErrorKind::Overloaded);
    check(r#"{"error":{"message":"m","type":"invalid_request_error"}}"#, ErrorKind::InvalidRequest);
    check(
        r#"{"object":"error","message":"m","type":"BadRequestError","code":400}"#,
        ErrorKind::InvalidRequest,
    );
    check(r#"{"error":{"message":"m","code":"context_length_exceeded"}}"#, ErrorKind::ContextOverflow);
    check(r#"{"type":"error","error":{"type":"api_error","message":"m"}}"#, ErrorKind::Server);
    check(r#"{"type":"error","error":{"type":"timeout_error","message":"m"}}"#, ErrorKind::Timeout);
    check(r#"{"type":"error","error":{"type":"billing_error","message":"m"}}"#, ErrorKind::QuotaExceeded);
    check(
        r#"{"type":"error","error":{"type":"request_too_large","message":"m"}}"#,
        ErrorKind::ContextOverflow,
    );
    check(r#"{"type":"error","code":"server_error","message":"m","param":null}"#, ErrorKind::Server);
    check(
        r#"{"type":"error","error":{"type":"rate_limit_error","code":null,"message":"m"}}"#,
        ErrorKind::RateLimited,
    );
    check(r#"{"error":{"code":"invalid_prompt","message":"m"}}"#, ErrorKind::InvalidRequest);
    check(r#"{"error":{"code":"failed_to_download_image","message":"m"}}"#, ErrorKind::InvalidRequest);
    check(r#"{"error":{"code":"vector_store_timeout","message":"m"}}"#, ErrorKind::Timeout);
    check(r#"{"error":"m"}"#, ErrorKind::Server);
    check(r#"{"error":{"code":99999999999999}}"#, ErrorKind::Server);
    check(r#"{"error":[]}"#, ErrorKind::Server);
}

#[test]
fn other_json_is_none() {
    for json in
        ["{}", "[]", "null", "1", r#"{"error":null}"#, r#"{"choices":[{"message":{}}]}"#, r#"{"object":""}"#]
    {
        assert_eq!(ServerError::read(&serde_json::from_str(json).unwrap()), None, "{json}");
    }
}

#[test]
fn a_long_text_is_cut_between_characters() {
    assert_eq!(excerpt(&"ä".repeat(QUOTED)), "ä".repeat(QUOTED));
    assert_eq!(excerpt(&"ä".repeat(QUOTED + 1)), format!("{}…", "ä".repeat(QUOTED)));
    assert_eq!(excerpt(" a \n b "), "a b");
}
