//! Large language models in your process: a safe binding of `libsitsoptima`.
//!
//! An [`Engine`] owns threads and memory, a [`Model`] is a loaded file, a [`Session`] is one
//! conversation, a [`Request`] is one question to it. Everything may be dropped in any order: what
//! is needed by something that lives stays.
//!
//! ```
//! use optima::{Engine, Model, Request, Session};
//!
//! # fn main() -> Result<(), optima::Error> {
//! # let path = std::env::var("OPTIMA_TEST_MODEL").unwrap();
//! let engine = Engine::new()?;
//! let model = Model::open(&engine, &path)?;
//! let session = Session::new(&model)?;
//! let answer = session.generate(&Request::new("The capital of France is").max_tokens(8))?;
//! println!("{}", answer.text());
//! # assert_eq!(answer.token_ids().len(), 8);
//! # Ok(())
//! # }
//! ```
//!
//! # Where the library is found
//! Without the feature `link` the crate opens `libsitsoptima.so.1` when the first engine is made:
//! the path given to [`Library::open`], else the folder of the running program, else the loader's
//! own search (`LD_LIBRARY_PATH`, `ldconfig`). With `link` the program is linked to it.
//!
//! # Threads
//! Every type is `Send` and `Sync` where the C header's thread tags allow it: all calls but the
//! destroy functions may be made from any thread, and `Drop` is alone by nature. A session runs one
//! request at a time and answers others with [`ErrorKind::Busy`].
//!
//! # Errors and panics
//! What fails is an [`Error`] with its kind and its numbers. A request that was cancelled or met
//! its deadline is an error too; [`Error::partial`] holds what there was. A panic in a closure that
//! the library called is carried past the C code and goes on in the call that led there.
#![warn(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

#[cfg(not(unix))]
compile_error!("libsitsoptima exists for unix targets only");

mod cancel;
mod chat;
mod engine;
mod error;
mod event;
mod generation;
mod handle;
mod hooks;
mod library;
mod model;
mod pump;
#[allow(missing_docs)]
#[rustfmt::skip]
pub mod raw;
mod request;
mod session;
mod stream;

pub use cancel::CancelToken;
pub use chat::Chat;
pub use engine::{Drive, Engine, EngineOptions, LogLevel};
pub use error::{Error, ErrorKind};
pub use event::{Event, EventKind, OwnedEvent, Verdict};
pub use generation::{Finish, Generation};
pub use library::{Library, FILE_NAME};
pub use model::{Content, Metadata, Model, ModelOptions, Repack, Weights};
pub use request::{Grammar, Normalise, Pooling, Request};
pub use session::{KvType, Output, Path, Session, SessionOptions};
pub use stream::Stream;

/// What a request cost; times in nanoseconds from its submission.
pub type Counters = raw::optima_counters;
/// Memory of an engine in bytes.
pub type Memory = raw::optima_memory;
/// What an engine does and has done.
pub type Metrics = raw::optima_metrics;
/// Sizes and special tokens of a model.
pub type ModelInfo = raw::optima_model_info;
/// What a session holds of KV.
pub type SessionKv = raw::optima_session_kv;
/// A token and the natural logarithm of its probability.
pub type TokenLogprob = raw::optima_token_logprob;
