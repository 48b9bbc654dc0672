//! Why a call failed.

use crate::generation::Generation;
use crate::raw;
use std::ffi::CStr;
use std::fmt;
use std::ptr::null_mut;
use std::sync::Arc;

/// What went wrong, in the groups of the C ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument is wrong.
    Argument,
    /// The object is not in a state that allows the call.
    State,
    /// Reading or writing failed, or a file is missing.
    Io,
    /// A file is malformed.
    Format,
    /// Host memory or the engine's limit is exhausted.
    OutOfMemory,
    /// Device memory is exhausted.
    DeviceOutOfMemory,
    /// The device is gone; objects on it can only be dropped.
    DeviceLost,
    /// Cancelled by a [`CancelToken`](crate::CancelToken), a verdict or a callback.
    Cancelled,
    /// The request's deadline passed.
    Deadline,
    /// The prompt does not fit into the session.
    ContextFull,
    /// In use by another call, the queue is full, or the call came from a callback.
    Busy,
    /// The object was made in another process.
    Forked,
    /// Versions do not fit together: a saved session, or an older libsitsoptima.
    Version,
    /// A fault of the library.
    Internal,
    /// Well-formed, but this version cannot do it.
    Unsupported,
    /// `libsitsoptima` was not found; the message says where it was looked for.
    LibraryMissing,
    /// A status that a later release introduced.
    Other(i32),
}

impl ErrorKind {
    fn of(status: raw::optima_status) -> ErrorKind {
        match status {
            raw::OPTIMA_E_ARG => ErrorKind::Argument,
            raw::OPTIMA_E_STATE => ErrorKind::State,
            raw::OPTIMA_E_IO => ErrorKind::Io,
            raw::OPTIMA_E_FORMAT => ErrorKind::Format,
            raw::OPTIMA_E_OOM_HOST => ErrorKind::OutOfMemory,
            raw::OPTIMA_E_OOM_DEVICE => ErrorKind::DeviceOutOfMemory,
            raw::OPTIMA_E_DEVICE_LOST => ErrorKind::DeviceLost,
            raw::OPTIMA_E_CANCELLED => ErrorKind::Cancelled,
            raw::OPTIMA_E_DEADLINE => ErrorKind::Deadline,
            raw::OPTIMA_E_CONTEXT_FULL => ErrorKind::ContextFull,
            raw::OPTIMA_E_BUSY => ErrorKind::Busy,
            raw::OPTIMA_E_FORKED => ErrorKind::Forked,
            raw::OPTIMA_E_VERSION => ErrorKind::Version,
            raw::OPTIMA_E_INTERNAL => ErrorKind::Internal,
            raw::OPTIMA_E_UNSUPPORTED => ErrorKind::Unsupported,
            other => ErrorKind::Other(other),
        }
    }
}

/// A failed call: what kind, in words, and with the numbers that the library gives.
///
/// ```
/// # let path = std::env::var("OPTIMA_TEST_MODEL").unwrap();
/// # let engine = optima::Engine::new()?;
/// # let model = optima::Model::open(&engine, &path)?;
/// let session = optima::SessionOptions::new().context_tokens(16).create(&model)?;
/// let error = session.generate(&optima::Request::from_ids(&[3; 20])).unwrap_err();
/// assert_eq!(error.kind(), optima::ErrorKind::ContextFull);
/// assert_eq!((error.needed(), error.limit()), (Some(20), Some(16)));
/// # Ok::<(), optima::Error>(())
/// ```
#[derive(Clone)]
pub struct Error(Arc<Parts>);

struct Parts {
    kind: ErrorKind,
    message: String,
    needed: Option<i64>,
    free: Option<i64>,
    limit: Option<i64>,
    partial: Option<Generation>,
}

impl Error {
    /// The group it belongs to.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What was needed: bytes, tokens, ..., as the message says.
    pub fn needed(&self) -> Option<i64> {
        self.0.needed
    }

    /// What there was of it.
    pub fn free(&self) -> Option<i64> {
        self.0.free
    }

    /// The limit that was met.
    pub fn limit(&self) -> Option<i64> {
        self.0.limit
    }

    /// What a request that was cancelled or late had produced by then.
    pub fn partial(&self) -> Option<&Generation> {
        self.0.partial.as_ref()
    }

    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error::with_numbers(kind, message, [None; 3])
    }

    /// `numbers` are needed, free and limit.
    pub(crate) fn with_numbers(
        kind: ErrorKind,
        message: impl Into<String>,
        numbers: [Option<i64>; 3],
    ) -> Error {
        let [needed, free, limit] = numbers;
        let message = message.into();
        Error(Arc::new(Parts { kind, message, needed, free, limit, partial: None }))
    }

    /// A request whose output ends before its time.
    pub(crate) fn ended(
        kind: ErrorKind,
        message: String,
        numbers: [Option<i64>; 3],
        partial: Generation,
    ) -> Error {
        let [needed, free, limit] = numbers;
        let partial = Some(partial);
        Error(Arc::new(Parts { kind, message, needed, free, limit, partial }))
    }

    /// Takes over what a failed call left; `error` may be null (no memory was left for it).
    fn take(
        api: &raw::optima_api_v1,
        status: raw::optima_status,
        error: *mut raw::optima_error,
    ) -> Error {
        let number = |value: i64| if value < 0 { None } else { Some(value) };
        // SAFETY: `error` is null or a live error that this call owns; the functions take both.
        // The message is a NUL-terminated string that lives until the error is destroyed.
        unsafe {
            let numbers = [
                number((api.error_wanted)(error)),
                number((api.error_available)(error)),
                number((api.error_limit)(error)),
            ];
            let text = if error.is_null() {
                CStr::from_ptr((api.status_name)(status))
            } else {
                CStr::from_ptr((api.error_message)(error))
            };
            let made = Error::with_numbers(
                ErrorKind::of(status),
                text.to_string_lossy().into_owned(),
                numbers,
            );
            (api.error_destroy)(error);
            made
        }
    }
}

/// Makes one fallible call; it gets the place for the error object.
pub(crate) fn check(
    api: &raw::optima_api_v1,
    call: impl FnOnce(*mut *mut raw::optima_error) -> raw::optima_status,
) -> Result<(), Error> {
    let mut error = null_mut();
    match call(&mut error) {
        raw::OPTIMA_OK => Ok(()),
        status => Err(Error::take(api, status, error)),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("needed", &self.0.needed)
            .field("free", &self.0.free)
            .field("limit", &self.0.limit)
            .finish()
    }
}

impl std::error::Error for Error {}
