//! Errors in the forms of both bindings.

use a2a::{A2AError, JsonRpcId, JsonRpcResponse, VERSION, error_code, error_reason, errordetails};
use serde_json::{Value, json};

/// Returns the response of a JSON-RPC request that failed.
pub fn rpc(id: JsonRpcId, error: &A2AError) -> Value {
    let mut response = JsonRpcResponse::error(id, error.to_jsonrpc_error());
    if let Some(error) = &mut response.error {
        error.data = Some(details(&error.code));
    }
    serde_json::to_value(response).unwrap_or_default()
}

/// Returns the body of an HTTP+JSON response that failed, a `google.rpc.Status`.
pub fn rest(error: &A2AError) -> Value {
    json!({ "error": {
        "code": error.http_status_code(),
        "status": status(error.code),
        "message": error.message,
        "details": details(&error.code),
    } })
}

/// The details without a time, so that equal errors are equal.
fn details(code: &i32) -> Value {
    json!([{
        "@type": errordetails::ERROR_INFO_TYPE,
        "reason": error_reason(*code),
        "domain": errordetails::PROTOCOL_DOMAIN,
        "metadata": {},
    }])
}

fn status(code: i32) -> &'static str {
    match code {
        error_code::TASK_NOT_FOUND | error_code::METHOD_NOT_FOUND => "NOT_FOUND",
        error_code::INTERNAL_ERROR | error_code::INVALID_AGENT_RESPONSE => "INTERNAL",
        error_code::PARSE_ERROR
        | error_code::INVALID_REQUEST
        | error_code::INVALID_PARAMS
        | error_code::CONTENT_TYPE_NOT_SUPPORTED => "INVALID_ARGUMENT",
        _ => "FAILED_PRECONDITION",
    }
}

/// Checks the version that a client speaks: of `1.0` and its patches. None means 0.3, which is not
/// spoken here.
///
/// # Errors
/// `VERSION_NOT_SUPPORTED`.
pub fn check_version(version: Option<&str>) -> Result<(), A2AError> {
    let version = version.map(str::trim).filter(|version| !version.is_empty()).unwrap_or("0.3");
    let is_spoken =
        version.strip_prefix(VERSION).is_some_and(|patch| patch.is_empty() || patch.starts_with('.'));
    if is_spoken {
        return Ok(());
    }
    let message = format!("A2A version {version} is not spoken here; send `A2A-Version: {VERSION}`");
    Err(A2AError::new(error_code::VERSION_NOT_SUPPORTED, message))
}
