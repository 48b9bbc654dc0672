//! What happens to a request while it runs.

use crate::generation::Finish;
use crate::handle::{items, text};
use crate::raw;
use std::fmt;
use std::ops::Deref;

/// What an event tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// Prompt progress: [`Event::tokens_done`] of [`Event::tokens_total`].
    Prefill,
    /// One output token.
    Token,
    /// The last event; streams end with it instead of giving it out.
    Done,
    /// One that a later release introduced.
    Other(i32),
}

/// What the closure of [`Session::generate_with`](crate::Session::generate_with) decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Verdict {
    /// Go on.
    Continue = raw::OPTIMA_CONTINUE,
    /// End here; keep the output and the session's tokens.
    Stop = raw::OPTIMA_STOP,
    /// End with [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled); the session is as before.
    Cancel = raw::OPTIMA_CANCEL,
}

/// Something that happened to a request.
#[repr(transparent)]
pub struct Event(raw::optima_event);

// SAFETY: an event is never changed while it is shared, and what it points at belongs to it.
unsafe impl Send for Event {}
// SAFETY: as for Send.
unsafe impl Sync for Event {}

impl Event {
    /// # Safety
    /// `event` is a live event of the library that stays unchanged for `'a`, of at least the size
    /// that this crate knows.
    pub(crate) unsafe fn view<'a>(event: *const raw::optima_event) -> &'a Event {
        // SAFETY: the caller's promise; the type is transparent.
        unsafe { &*event.cast::<Event>() }
    }

    /// What it tells.
    pub fn kind(&self) -> EventKind {
        match self.0.type_ {
            raw::OPTIMA_EVENT_PREFILL => EventKind::Prefill,
            raw::OPTIMA_EVENT_TOKEN => EventKind::Token,
            raw::OPTIMA_EVENT_DONE => EventKind::Done,
            other => EventKind::Other(other),
        }
    }

    /// Text that became complete: whole characters, may be empty.
    pub fn text(&self) -> &str {
        // SAFETY: the event's own text, which lives and stays as long as the event.
        unsafe { text(self.0.text, self.0.text_bytes) }
    }

    /// Exactly the token's bytes; may be a part of a character.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: as for `text`.
        unsafe { items(self.0.bytes.cast(), self.0.bytes_count) }
    }

    /// Token id; none for other events.
    pub fn token(&self) -> Option<i32> {
        if self.0.token < 0 {
            None
        } else {
            Some(self.0.token)
        }
    }

    /// Natural logarithm of the token's probability.
    pub fn logprob(&self) -> f32 {
        self.0.logprob
    }

    /// Most probable tokens, best first; as many as [`Request::logprobs`](crate::Request::logprobs)
    /// asked.
    pub fn top(&self) -> &[raw::optima_token_logprob] {
        // SAFETY: as for `text`.
        unsafe { items(self.0.top, self.0.top_count) }
    }

    /// Output index of the token.
    pub fn index(&self) -> i64 {
        self.0.index
    }

    /// Prompt tokens processed.
    pub fn tokens_done(&self) -> i64 {
        self.0.tokens_done
    }

    /// Prompt tokens in all.
    pub fn tokens_total(&self) -> i64 {
        self.0.tokens_total
    }

    /// Why the request ended ([`EventKind::Done`]).
    pub fn finish(&self) -> Finish {
        Finish::of(self.0.finish)
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("kind", &self.kind())
            .field("token", &self.token())
            .field("text", &self.text())
            .finish()
    }
}

/// An event of a stream, which owns its bytes.
pub struct OwnedEvent {
    event: Event,
    release: unsafe extern "C" fn(*mut raw::optima_event),
}

impl OwnedEvent {
    /// # Safety
    /// `event` came from `optima_poll` of the library whose function `release` is, and is released
    /// nowhere else.
    pub(crate) unsafe fn new(event: raw::optima_event, api: &raw::optima_api_v1) -> OwnedEvent {
        OwnedEvent { event: Event(event), release: api.event_release }
    }

    pub(crate) fn user(&self) -> *mut std::os::raw::c_void {
        self.event.0.user
    }
}

impl Deref for OwnedEvent {
    type Target = Event;

    fn deref(&self) -> &Event {
        &self.event
    }
}

impl Drop for OwnedEvent {
    fn drop(&mut self) {
        // SAFETY: MT_PER_OBJECT, and Drop has the event alone; it was not released before.
        unsafe { (self.release)(&mut self.event.0) }
    }
}

impl fmt::Debug for OwnedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.event.fmt(f)
    }
}
