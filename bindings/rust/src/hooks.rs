//! Closures that the library calls. A panic in one is kept and goes on where Rust called C.

use crate::event::{Event, Verdict};
use crate::raw;
use crate::request::Request;
use std::any::Any;
use std::cell::UnsafeCell;
use std::mem::forget;
use std::ops::ControlFlow;
use std::os::raw::c_void;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Changes logits in place; gets the tokens so far.
pub(crate) type OnLogits = Arc<dyn Fn(&mut [f32], &[i32]) -> ControlFlow<()> + Send + Sync>;

/// A lock whose data is good whatever its last holder did.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first panic of closures that C called.
#[derive(Default)]
pub(crate) struct Panic(Mutex<Option<Box<dyn Any + Send>>>);

impl Panic {
    /// Runs a closure for C; `broken` is what C gets when it panics.
    pub fn catch<R>(&self, broken: R, run: impl FnOnce() -> R) -> R {
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| {
            let mut kept = lock(&self.0);
            if kept.is_none() {
                *kept = Some(payload);
            } else {
                forget(payload); // Its drop could panic again, and C is above.
            }
            broken
        })
    }

    /// Goes on with the panic, if there was one.
    pub fn resume(&self) {
        let kept = lock(&self.0).take();
        if let Some(payload) = kept {
            resume_unwind(payload);
        }
    }
}

/// What `user` of every request points at, whatever follows behind.
#[repr(C)]
pub(crate) struct Hooks {
    pub panic: Panic,
    on_logits: Option<OnLogits>,
}

impl Hooks {
    pub fn of(request: &Request) -> Hooks {
        Hooks { panic: Panic::default(), on_logits: request.logits_hook() }
    }

    pub fn on_logits_fn(&self) -> Option<raw::optima_on_logits_fn> {
        self.on_logits.as_ref().map(|_| on_logits as raw::optima_on_logits_fn)
    }
}

/// `user` of one blocking call. It lives on the stack of the caller.
#[repr(C)]
pub(crate) struct Call<F> {
    pub hooks: Hooks,
    on_event: UnsafeCell<F>,
}

impl<F: FnMut(&Event) -> Verdict> Call<F> {
    pub fn new(request: &Request, on_event: F) -> Call<F> {
        Call { hooks: Hooks::of(request), on_event: UnsafeCell::new(on_event) }
    }

    pub fn on_event_fn(&self) -> raw::optima_on_event_fn {
        on_event::<F>
    }
}

unsafe extern "C" fn on_event<F: FnMut(&Event) -> Verdict>(
    user: *mut c_void,
    event: *const raw::optima_event,
) -> i32 {
    let call = user as *const Call<F>;
    // SAFETY: `user` is the `Call<F>` of a call that runs on this thread. Other threads look at its
    // hooks only. The library makes one event call at a time and refuses requests from inside it, so
    // that the closure is borrowed once. The event lives until this returns.
    unsafe {
        let run = || {
            let closure = &mut *(*call).on_event.get();
            closure(Event::view(event)) as i32
        };
        (*call).hooks.panic.catch(raw::OPTIMA_CANCEL, run)
    }
}

unsafe extern "C" fn on_logits(
    user: *mut c_void,
    logits: *mut f32,
    vocabulary: i64,
    tokens: *const i32,
    token_count: i64,
) -> i32 {
    // SAFETY: `user` begins with the hooks of a request that runs (see Call and Mailbox). Logits
    // and tokens are arrays of these lengths, the logits for this call's alone.
    let (hooks, logits, tokens) = unsafe {
        (
            &*(user as *const Hooks),
            std::slice::from_raw_parts_mut(logits, vocabulary as usize),
            crate::handle::items(tokens, token_count),
        )
    };
    hooks.panic.catch(1, || match &hooks.on_logits {
        Some(hook) if hook(logits, tokens).is_break() => 1,
        _ => 0,
    })
}
