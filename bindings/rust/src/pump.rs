//! The events of an engine's streams. `optima_poll` gives those of all requests together; whoever
//! waits for one polls for all and puts each event into the mailbox of its stream.

use crate::engine::{Drive, EngineShared};
use crate::error::{check, Error, ErrorKind};
use crate::event::OwnedEvent;
use crate::hooks::{lock, Hooks};
use crate::raw;
use std::collections::VecDeque;
use std::mem::{size_of, MaybeUninit};
use std::os::raw::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most events of one poll. The library makes room for as many as it is asked for, so that one
/// stream asks for one.
const EVENTS_MAX: usize = 32;
/// How long a turn of a host-driven engine waits for another thread that is inside.
const TURN_WAIT: Duration = Duration::from_millis(1);

/// `user` of one submitted request: the library holds a count of it until its release hook.
#[repr(C)]
pub(crate) struct Mailbox {
    pub hooks: Hooks,
    queue: Mutex<Queue>,
    /// What `logits_out` points at until the request is done.
    pub logits: Mutex<Vec<f32>>,
}

struct Queue {
    events: VecDeque<OwnedEvent>,
    open: bool,
}

impl Mailbox {
    pub fn new(hooks: Hooks, logits: Vec<f32>) -> Arc<Mailbox> {
        let queue = Mutex::new(Queue { events: VecDeque::new(), open: true });
        Arc::new(Mailbox { hooks, queue, logits: Mutex::new(logits) })
    }

    pub fn take(&self) -> Option<OwnedEvent> {
        lock(&self.queue).events.pop_front()
    }

    fn has_events(&self) -> bool {
        !lock(&self.queue).events.is_empty()
    }

    fn put(&self, event: OwnedEvent) {
        let mut queue = lock(&self.queue);
        if queue.open {
            queue.events.push_back(event);
        }
    }

    /// Nobody takes events any more. An event keeps its mailbox alive: those inside must go.
    pub fn close(&self) {
        let events = {
            let mut queue = lock(&self.queue);
            queue.open = false;
            std::mem::take(&mut queue.events)
        };
        drop(events);
    }
}

/// The release hook of submitted requests.
pub(crate) unsafe extern "C" fn release_mailbox(user: *mut c_void) {
    // SAFETY: `user` is the count that the submission gave away; the hook is called exactly once.
    drop(unsafe { Arc::from_raw(user as *const Mailbox) });
}

/// Who polls an engine.
#[derive(Default)]
pub(crate) struct Pump {
    /// Whether a thread is inside `optima_poll` for all.
    turning: Mutex<bool>,
    turned: Condvar,
    streams: AtomicUsize,
}

impl Pump {
    pub fn add_stream(&self) {
        self.streams.fetch_add(1, Ordering::Relaxed);
    }

    pub fn remove_stream(&self) {
        self.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

fn left(until: Option<Instant>) -> Option<Duration> {
    until.map(|until| until.saturating_duration_since(Instant::now()))
}

fn milliseconds(left: Option<Duration>) -> i32 {
    // Rounded up: what is left must have passed when a wait of it ends.
    left.map_or(-1, |left| i32::try_from(left.as_micros().div_euclid(1000) + 1).unwrap_or(i32::MAX))
}

impl EngineShared {
    /// The next event for the mailbox; none when the time has passed. Without a time it waits for
    /// as long as the request runs.
    pub(crate) fn wait(
        &self,
        mailbox: &Mailbox,
        until: Option<Instant>,
    ) -> Result<Option<OwnedEvent>, Error> {
        let mut turning = lock(&self.pump.turning);
        let mut late = false;
        loop {
            if let Some(event) = mailbox.take() {
                return Ok(Some(event));
            }
            if late {
                return Ok(None);
            }
            let rest = left(until);
            late = rest == Some(Duration::ZERO);
            if *turning {
                let turned = &self.pump.turned;
                turning = match rest {
                    None => turned.wait(turning).unwrap_or_else(PoisonError::into_inner),
                    Some(rest) => {
                        let woken = turned.wait_timeout(turning, rest);
                        woken.unwrap_or_else(PoisonError::into_inner).0
                    }
                };
                continue;
            }
            *turning = true;
            drop(turning);
            let polled = self.turn(rest);
            turning = lock(&self.pump.turning);
            *turning = false;
            self.pump.turned.notify_all();
            // Without events before its time, the poll found no request that runs.
            let early = left(until) != Some(Duration::ZERO);
            if polled? == 0 && early && !mailbox.has_events() {
                let text = "the engine has no further events for the request";
                return Err(Error::new(ErrorKind::State, text));
            }
        }
    }

    /// Hands out events, waiting for the first one; how many.
    fn turn(&self, rest: Option<Duration>) -> Result<usize, Error> {
        if self.drive == Drive::Library {
            return self.hand_out(if rest == Some(Duration::ZERO) {
                0
            } else {
                milliseconds(rest)
            });
        }
        let until = rest.map(|rest| Instant::now() + rest);
        loop {
            let count = self.hand_out(0)?;
            if count > 0 {
                return Ok(count);
            }
            let worked = match self.step() {
                Err(error) if error.kind() == ErrorKind::Busy => {
                    std::thread::sleep(TURN_WAIT);
                    true
                }
                other => other?,
            };
            if !worked || left(until) == Some(Duration::ZERO) {
                return self.hand_out(0);
            }
        }
    }

    fn hand_out(&self, timeout_ms: i32) -> Result<usize, Error> {
        let mut events = MaybeUninit::<[raw::optima_event; EVENTS_MAX]>::uninit();
        let capacity = self.pump.streams.load(Ordering::Relaxed).clamp(1, EVENTS_MAX);
        let start = events.as_mut_ptr().cast::<raw::optima_event>();
        let mut count = 0;
        // SAFETY: MT_SAFE; there is room for `capacity` events, which the library only writes.
        check(self.api, |error| unsafe {
            (self.api.poll)(
                self.handle.get(),
                start,
                capacity,
                size_of::<raw::optima_event>(),
                timeout_ms,
                &mut count,
                error,
            )
        })?;
        for index in 0..count {
            // SAFETY: the first `count` events were written, each is read once and owned from here.
            // Every request of this engine was submitted by a Stream, whose `user` is a mailbox that
            // the library holds a count of for as long as the event is not released.
            unsafe {
                let event = OwnedEvent::new(start.add(index).read(), self.api);
                let mailbox = event.user() as *const Mailbox;
                Arc::increment_strong_count(mailbox); // `put` may drop the event and its count.
                Arc::from_raw(mailbox).put(event);
            }
        }
        Ok(count)
    }
}
