//! One error type for the whole engine: a stable code, what was wrong, where, and the cure.

use std::fmt;
use std::sync::Arc;

/// What kind of thing went wrong. The text form ([`ErrorCode::as_str`]) is stable: services match on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorCode {
    /// A parameter is outside its range or of the wrong kind.
    InvalidArgument,
    /// A parameter has a name that does not exist.
    UnknownOption,
    /// Two matrices, or a matrix and a model, do not fit together.
    ShapeMismatch,
    /// A value is NaN or infinite.
    NotFinite,
    /// A row, column or label id is not below its limit.
    IndexOutOfRange,
    /// Indices of a row are not strictly ascending, or a row pointer falls.
    UnsortedIndices,
    /// An index occurs twice in one row.
    DuplicateIndex,
    /// A text or array file breaks its format.
    Parse,
    /// The operating system refused: file missing, no permission, disk full.
    Io,
    /// The file is no Aquila model, or is cut short, or its structure is broken.
    BadModel,
    /// The model file is of a version that this build cannot read.
    ModelVersion,
    /// The model file's bytes differ from its checksums.
    Checksum,
    /// A tree does not hold every label at least once, or its layers do not fit together.
    BadTree,
    /// The object was closed.
    Closed,
    /// The caller cancelled.
    Cancelled,
    /// The forecast memory passes the given limit.
    MemoryLimit,
    /// The system refused memory.
    OutOfMemory,
    /// A valid request that this version does not serve.
    Unsupported,
    /// There is no native library for this platform. The engine itself never says so: the facade does, which loads it.
    UnsupportedPlatform,
    /// A defect of Aquila itself.
    Internal,
}

impl ErrorCode {
    /// Every code, for the documentation and for tests.
    pub const ALL: [ErrorCode; 20] = [
        Self::InvalidArgument,
        Self::UnknownOption,
        Self::ShapeMismatch,
        Self::NotFinite,
        Self::IndexOutOfRange,
        Self::UnsortedIndices,
        Self::DuplicateIndex,
        Self::Parse,
        Self::Io,
        Self::BadModel,
        Self::ModelVersion,
        Self::Checksum,
        Self::BadTree,
        Self::Closed,
        Self::Cancelled,
        Self::MemoryLimit,
        Self::OutOfMemory,
        Self::Unsupported,
        Self::UnsupportedPlatform,
        Self::Internal,
    ];

    /// The stable text of the code.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::UnknownOption => "UNKNOWN_OPTION",
            Self::ShapeMismatch => "SHAPE_MISMATCH",
            Self::NotFinite => "NOT_FINITE",
            Self::IndexOutOfRange => "INDEX_OUT_OF_RANGE",
            Self::UnsortedIndices => "UNSORTED_INDICES",
            Self::DuplicateIndex => "DUPLICATE_INDEX",
            Self::Parse => "PARSE",
            Self::Io => "IO",
            Self::BadModel => "BAD_MODEL",
            Self::ModelVersion => "MODEL_VERSION",
            Self::Checksum => "CHECKSUM",
            Self::BadTree => "BAD_TREE",
            Self::Closed => "CLOSED",
            Self::Cancelled => "CANCELLED",
            Self::MemoryLimit => "MEMORY_LIMIT",
            Self::OutOfMemory => "OUT_OF_MEMORY",
            Self::Unsupported => "UNSUPPORTED",
            Self::UnsupportedPlatform => "UNSUPPORTED_PLATFORM",
            Self::Internal => "INTERNAL",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error of the engine. The message names the value, the place and, where there is one, the cure.
///
/// Errors of the operating system are its [`source`](std::error::Error::source), an [`std::io::Error`] with its kind:
///
/// ```
/// use std::error::Error;
/// let error = aquila::xlinear::Model::open("nowhere.aquila".as_ref()).unwrap_err();
/// let source = error.source().and_then(|e| e.downcast_ref::<std::io::Error>()).unwrap();
/// assert_eq!(source.kind(), std::io::ErrorKind::NotFound);
/// ```
#[derive(Debug, Clone)]
pub struct Error {
    code: ErrorCode,
    message: String,
    source: Option<Arc<std::io::Error>>,
}

/// Two errors are equal if code and message are.
impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        (self.code, &self.message) == (other.code, &other.message)
    }
}

impl Eq for Error {}

impl Error {
    /// An error of this code with this message.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), source: None }
    }

    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// What happened, where, and what to do.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The same error with the place in front: `"train.txt, line 7: …"`.
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }

    /// An operating-system error on a file.
    pub fn io(path: impl AsRef<std::path::Path>, error: std::io::Error) -> Self {
        let message = format!("{}: {error}", path.as_ref().display());
        Self { code: ErrorCode::Io, message, source: Some(Arc::new(error)) }
    }

    /// The error of a cancelled call.
    pub fn cancelled() -> Self {
        Self::new(ErrorCode::Cancelled, "the call was cancelled")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|e| e as _)
    }
}

/// The engine's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Ends the function with an error: `fail!(ShapeMismatch, "x has {} rows", n)`.
macro_rules! fail {
    ($code:ident, $($message:tt)+) => {
        return Err($crate::error::Error::new($crate::error::ErrorCode::$code, format!($($message)+)))
    };
}
pub(crate) use fail;
