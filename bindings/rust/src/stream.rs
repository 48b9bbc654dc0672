//! A request whose events are taken one by one.

use crate::error::Error;
use crate::event::{EventKind, OwnedEvent};
use crate::generation::{Generation, Limits};
use crate::handle::Handle;
use crate::hooks::{lock, Hooks};
use crate::pump::{release_mailbox, Mailbox};
use crate::raw;
use crate::request::Request;
use crate::session::SessionShared;
use std::fmt;
use std::os::raw::c_void;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// Most time that dropping a stream waits for its request to end.
const DROP_WAIT: Duration = Duration::from_secs(2);

/// A running request. As an iterator it gives events, waiting for each, and ends with the request;
/// [`Stream::finish`] gives the result. Dropping it cancels the request; the session keeps the
/// tokens so far.
///
/// ```
/// # let path = std::env::var("OPTIMA_TEST_MODEL").unwrap();
/// # let engine = optima::Engine::new()?;
/// # let model = optima::Model::open(&engine, &path)?;
/// # let session = optima::Session::new(&model)?;
/// let mut stream = session.stream(&optima::Request::new("a garden").max_tokens(8))?;
/// let mut text = String::new();
/// for event in &mut stream {
///     text += event?.text();
/// }
/// assert_eq!(text, stream.finish()?.text());
/// # Ok::<(), optima::Error>(())
/// ```
pub struct Stream {
    request: Handle<raw::optima_request>,
    mailbox: Arc<Mailbox>,
    session: Arc<SessionShared>,
    limits: Limits,
    outcome: Option<Result<(), Error>>,
    generation: Option<Generation>,
}

impl Stream {
    pub(crate) fn start(session: Arc<SessionShared>, request: &Request) -> Result<Stream, Error> {
        let api = session.api();
        let mailbox = Mailbox::new(Hooks::of(request), session.logits_for(request)?);
        let handle = {
            let mut logits = lock(&mailbox.logits);
            request.with_desc(&mut logits, |desc| {
                desc.on_logits = mailbox.hooks.on_logits_fn();
                desc.user = Arc::into_raw(Arc::clone(&mailbox)) as *mut c_void;
                desc.release = Some(release_mailbox);
                Handle::make(api, api.request_destroy, |out, error| {
                    // SAFETY: MT_SAFE; the description lives for the call. `user` is a count of the
                    // mailbox, given back by the release hook also when this fails; the mailbox
                    // holds the room for logits, which nobody touches until the request is done.
                    unsafe { (api.submit)(session.handle.get(), desc, out, error) }
                })
            })?
        };
        session.model.engine.pump.add_stream();
        let limits = Limits::of(request);
        Ok(Stream { request: handle, mailbox, session, limits, outcome: None, generation: None })
    }

    /// Number of the request, unique in its engine.
    pub fn id(&self) -> u64 {
        // SAFETY: MT_SAFE; the request is live.
        unsafe { (self.session.api().request_id)(self.request.get()) }
    }

    /// Ends the request as cancelled, from any thread; the session keeps the
    /// tokens so far.
    pub fn cancel(&self) {
        // SAFETY: MT_SIGNAL; the request is live. Its status only tells of a dead handle.
        unsafe { (self.session.api().request_cancel)(self.request.get()) };
    }

    /// The next event, waiting at most so long: pending when there is none yet, ready with none at
    /// the end. For hosts with a loop of their own; see [`Engine::wakeup_fd`](crate::Engine::wakeup_fd).
    pub fn poll(&mut self, wait: Duration) -> Poll<Option<Result<OwnedEvent, Error>>> {
        self.advance(Instant::now().checked_add(wait))
    }

    /// Waits for the end and gives the result.
    pub fn finish(mut self) -> Result<Generation, Error> {
        while self.outcome.is_none() {
            if let Poll::Ready(Some(Err(error))) = self.advance(None) {
                return Err(error);
            }
        }
        match &self.outcome {
            Some(Err(error)) => Err(error.clone()),
            _ => Ok(self.generation.take().expect("a request that ended well has a result")),
        }
    }

    fn advance(&mut self, until: Option<Instant>) -> Poll<Option<Result<OwnedEvent, Error>>> {
        if self.outcome.is_some() {
            return Poll::Ready(None);
        }
        match self.session.model.engine.wait(&self.mailbox, until) {
            Err(error) => Poll::Ready(Some(Err(error))),
            Ok(None) => Poll::Pending,
            Ok(Some(event)) if event.kind() == EventKind::Done => {
                drop(event);
                let outcome = self.conclude();
                self.outcome = Some(outcome.clone());
                self.mailbox.hooks.panic.resume();
                Poll::Ready(outcome.err().map(Err))
            }
            Ok(Some(event)) => Poll::Ready(Some(Ok(event))),
        }
    }

    fn conclude(&mut self) -> Result<(), Error> {
        let api = self.session.api();
        let result = Handle::make(api, api.result_destroy, |out, error| {
            // SAFETY: MT_SAFE; the request is live.
            unsafe { (api.request_result)(self.request.get(), out, error) }
        })?;
        let logits = std::mem::take(&mut *lock(&self.mailbox.logits));
        let generation = Generation::new(result, api, logits).conclude(&self.limits)?;
        self.generation = Some(generation);
        Ok(())
    }

    /// Whether the request is done and all its events were taken.
    pub fn is_finished(&self) -> bool {
        self.outcome.is_some()
    }
}

impl Iterator for Stream {
    type Item = Result<OwnedEvent, Error>;

    fn next(&mut self) -> Option<Result<OwnedEvent, Error>> {
        match self.advance(None) {
            Poll::Ready(item) => item,
            Poll::Pending => unreachable!("a wait without an end has no pending"),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let engine = &self.session.model.engine;
        if self.outcome.is_none() {
            self.cancel();
            let until = Instant::now() + DROP_WAIT;
            // Its events are in the engine until somebody takes them. In a callback that is refused
            // (Busy), and the next stream that waits takes them.
            while let Ok(Some(event)) = engine.wait(&self.mailbox, Some(until)) {
                if event.kind() == EventKind::Done {
                    break;
                }
            }
        }
        self.mailbox.close();
        engine.pump.remove_stream();
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("id", &self.id())
            .field("finished", &self.is_finished())
            .finish()
    }
}
