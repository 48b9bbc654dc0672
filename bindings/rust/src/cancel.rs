//! A latch that stops requests.

use crate::engine::Engine;
use crate::error::Error;
use crate::handle::Handle;
use crate::raw;
use std::fmt;
use std::sync::Arc;

/// Stops every request that carries it, now and later: before its start, in the prompt and in the
/// output. Clones are the same latch; it cannot be undone.
///
/// ```
/// # let path = std::env::var("OPTIMA_TEST_MODEL").unwrap();
/// # let engine = optima::Engine::new()?;
/// # let model = optima::Model::open(&engine, &path)?;
/// # let session = optima::Session::new(&model)?;
/// let token = optima::CancelToken::new(&engine)?;
/// let request = optima::Request::new("a").ignore_eos().context_shift(4).cancel(&token);
/// let other = token.clone();
/// let thread = std::thread::spawn(move || other.cancel());
/// let error = session.generate(&request).unwrap_err();
/// assert_eq!(error.kind(), optima::ErrorKind::Cancelled);
/// # thread.join().unwrap();
/// # Ok::<(), optima::Error>(())
/// ```
#[derive(Clone)]
pub struct CancelToken {
    latch: Arc<Handle<raw::optima_cancel>>,
    api: &'static raw::optima_api_v1,
}

impl CancelToken {
    /// A latch that is not triggered, for requests of any engine.
    pub fn new(engine: &Engine) -> Result<CancelToken, Error> {
        let api = engine.library().api();
        let latch = Handle::make(api, api.cancel_destroy, |out, error| {
            // SAFETY: both places are live for the call.
            unsafe { (api.cancel_create)(out, error) }
        })?;
        Ok(CancelToken { latch: Arc::new(latch), api })
    }

    /// Triggers it. One atomic store; also from signal handlers.
    pub fn cancel(&self) {
        // SAFETY: MT_SIGNAL; the latch is live. Its status only tells of a dead handle.
        unsafe { (self.api.cancel_trigger)(self.latch.get()) };
    }

    /// Whether it was triggered.
    pub fn is_cancelled(&self) -> bool {
        // SAFETY: MT_SIGNAL; the latch is live.
        unsafe { (self.api.cancel_triggered)(self.latch.get()) == 1 }
    }

    pub(crate) fn get(&self) -> *const raw::optima_cancel {
        self.latch.get()
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken").field("cancelled", &self.is_cancelled()).finish()
    }
}
