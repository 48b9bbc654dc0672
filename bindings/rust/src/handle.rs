//! Owned C handles.

use crate::error::{check, Error};
use crate::raw;
use std::ptr::{null_mut, NonNull};

/// One C object, destroyed at the end.
///
/// Used for engines, models, sessions, requests, results, cancel latches and buffers alone: the
/// header tags everything that this crate calls on those `MT_SAFE` or `MT_SIGNAL`, but their destroy
/// functions.
pub(crate) struct Handle<T> {
    object: NonNull<T>,
    destroy: unsafe extern "C" fn(*mut T),
}

// SAFETY: see above: shared use from any thread is allowed, and only Drop, which has the handle
// alone, calls the destroy function (MT_PER_OBJECT), on whatever thread that is.
unsafe impl<T> Send for Handle<T> {}
// SAFETY: as for Send.
unsafe impl<T> Sync for Handle<T> {}

impl<T> Handle<T> {
    /// Makes an object by a call that returns it through its first argument and fails through its
    /// second.
    pub(crate) fn make(
        api: &raw::optima_api_v1,
        destroy: unsafe extern "C" fn(*mut T),
        call: impl FnOnce(*mut *mut T, *mut *mut raw::optima_error) -> raw::optima_status,
    ) -> Result<Handle<T>, Error> {
        let mut object = null_mut();
        check(api, |error| call(&mut object, error))?;
        let object = NonNull::new(object).expect("a call that succeeds gives an object");
        Ok(Handle { object, destroy })
    }

    pub(crate) fn get(&self) -> *mut T {
        self.object.as_ptr()
    }
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        // SAFETY: the object came from the library, is destroyed here only, and nobody else can
        // use it any more.
        unsafe { (self.destroy)(self.object.as_ptr()) }
    }
}

/// `count` items at `start`; empty for what the library gives for nothing (null and 0).
///
/// # Safety
/// `start` is null or points at `count` items that live and do not change for `'a`.
pub(crate) unsafe fn items<'a, T>(start: *const T, count: i64) -> &'a [T] {
    if start.is_null() || count <= 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(start, count as usize) }
}

/// As `items`, of text that the ABI promises to be UTF-8.
///
/// # Safety
/// As `items`.
pub(crate) unsafe fn text<'a>(start: *const std::os::raw::c_char, bytes: i64) -> &'a str {
    // SAFETY: the caller's promise.
    let bytes = unsafe { items(start.cast::<u8>(), bytes) };
    std::str::from_utf8(bytes).expect("the library gives whole code points")
}
