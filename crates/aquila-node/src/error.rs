//! One error on both sides: the engine's code and message become `code` and `message` of a JavaScript error.

use aquila::ErrorCode;
use napi::bindgen_prelude::ToNapiValue;
use napi::{Env, Unknown};

/// The `code` property of a JavaScript error.
#[derive(Debug, Clone, Copy)]
pub struct Code(ErrorCode);

impl AsRef<str> for Code {
    fn as_ref(&self) -> &str {
        self.0.as_str()
    }
}

/// An error on its way to JavaScript.
pub type Error = napi::Error<Code>;

/// The result of everything that JavaScript calls.
pub type Result<T> = std::result::Result<T, Error>;

/// An error with this code.
pub fn error(code: ErrorCode, message: impl Into<String>) -> Error {
    Error::new(Code(code), message.into())
}

/// The error of an object that was closed.
pub fn closed(what: &str) -> Error {
    error(ErrorCode::Closed, format!("{what} is closed"))
}

/// Brings errors of the engine and of Node-API into the one form.
pub trait IntoJs<T> {
    /// The same result with an error for JavaScript.
    fn js(self) -> Result<T>;
}

impl<T> IntoJs<T> for aquila::Result<T> {
    fn js(self) -> Result<T> {
        self.map_err(|e| error(e.code(), e.message()))
    }
}

impl<T> IntoJs<T> for napi::Result<T> {
    fn js(self) -> Result<T> {
        // Node-API refuses when the facade handed in something it should have checked: a defect of ours.
        self.map_err(|e| error(ErrorCode::Internal, e.reason.clone()))
    }
}

/// The value that a promise is rejected with: deferreds carry no error codes of their own, so the JavaScript
/// error is made here and handed through as it is.
pub fn rejection(env: &Env, error: Error) -> napi::Error {
    // SAFETY: `env` is the live environment of the thread this runs on, and the value is used within its scope.
    let made = unsafe {
        Error::to_napi_value(env.raw(), error).map(|raw| Unknown::from_raw_unchecked(env.raw(), raw))
    };
    match made {
        Ok(value) => napi::Error::from(value),
        Err(e) => e,
    }
}
