//! One conversation.

use crate::error::{check, Error, ErrorKind};
use crate::event::{Event, Verdict};
use crate::generation::{Generation, Limits};
use crate::handle::{items, Handle};
use crate::hooks::{Call, Panic};
use crate::model::{ids_of, Model, ModelShared};
use crate::raw;
use crate::request::Request;
use crate::stream::Stream;
use crate::SessionKv;
use std::cell::UnsafeCell;
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::raw::{c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path;
use std::sync::Arc;

/// Which arithmetic a session uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Path {
    /// The fastest kernels that the CPU has.
    Fast = raw::OPTIMA_PATH_FAST,
    /// Plain fp32: slow, for comparison.
    Reference = raw::OPTIMA_PATH_REFERENCE,
    /// Fast kernels in a fixed order: the same bits in every batch.
    Deterministic = raw::OPTIMA_PATH_DETERMINISTIC,
}

/// How keys and values are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum KvType {
    /// 16 bits each.
    F16 = raw::OPTIMA_KV_TYPE_F16,
    /// 8 bits each with a scale for 32 of them.
    Q8_0 = raw::OPTIMA_KV_TYPE_Q8_0,
    /// 16 bits each, for keys or values beyond 65504.
    Bf16 = raw::OPTIMA_KV_TYPE_BF16,
}

/// What the requests of a session are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Output {
    /// They generate text.
    Tokens = raw::OPTIMA_OUTPUT_TOKENS,
    /// They make one vector of each prompt.
    Embedding = raw::OPTIMA_OUTPUT_EMBEDDING,
}

/// How a session works.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    raw: raw::optima_session_options,
    draft: Option<Model>,
}

// SAFETY: `raw` has pointers, all of them null until a call sets them in a copy.
unsafe impl Send for SessionOptions {}
// SAFETY: as for Send.
unsafe impl Sync for SessionOptions {}

impl SessionOptions {
    /// The defaults.
    pub fn new() -> SessionOptions {
        SessionOptions::default()
    }

    /// Most tokens that the session holds. 0 = the model's own context length.
    #[must_use]
    pub fn context_tokens(mut self, tokens: i64) -> SessionOptions {
        self.raw.context_tokens = tokens;
        self
    }

    /// Most prompt tokens computed at once. 0 = the engine's choice.
    #[must_use]
    pub fn prefill_chunk_tokens(mut self, tokens: i64) -> SessionOptions {
        self.raw.prefill_chunk_tokens = tokens;
        self
    }

    /// Which arithmetic.
    #[must_use]
    pub fn path(mut self, path: Path) -> SessionOptions {
        self.raw.path = path as i32;
        self
    }

    /// How keys and values are kept.
    #[must_use]
    pub fn kv_type(mut self, kv_type: KvType) -> SessionOptions {
        self.raw.kv_type = kv_type as i32;
        self
    }

    /// What its requests are for.
    #[must_use]
    pub fn output(mut self, output: Output) -> SessionOptions {
        self.raw.output = output as i32;
        self
    }

    /// A smaller model of the same engine and vocabulary that makes the guesses of
    /// [`Request::draft_tokens`].
    #[must_use]
    pub fn draft_model(mut self, model: &Model) -> SessionOptions {
        self.draft = Some(model.clone());
        self
    }

    /// An empty session.
    pub fn create(&self, model: &Model) -> Result<Session, Error> {
        let api = model.api();
        self.make(model, |options, out, error| {
            // SAFETY: MT_SAFE; options and places live for the call.
            unsafe { (api.session_create)(model.get(), options, out, error) }
        })
    }

    /// A session that goes on where one of the same model and options was saved.
    pub fn restore(&self, model: &Model, path: impl AsRef<path::Path>) -> Result<Session, Error> {
        let (api, path) = (model.api(), path.as_ref().as_os_str().as_bytes());
        self.make(model, |options, out, error| {
            let (restore, start) = (api.session_restore_path, path.as_ptr().cast());
            // SAFETY: MT_SAFE; options, path and places live for the call.
            unsafe { restore(model.get(), options, start, path.len(), out, error) }
        })
    }

    /// As `restore`, from a reader that holds the saved session from its beginning to its end.
    pub fn restore_from<R: Read + Seek>(
        &self,
        model: &Model,
        mut from: R,
    ) -> Result<Session, Error> {
        let length = from.seek(SeekFrom::End(0)).map_err(|why| io_error("seek", &why))?;
        let call = Transfer::new(from);
        let io = raw::optima_io {
            length: length as i64,
            read: Some(read_range::<R>),
            user: call.user(),
            ..Default::default()
        };
        let api = model.api();
        let made = self.make(model, |options, out, error| {
            // SAFETY: MT_SAFE; options, places and the reader behind `io` live for the call.
            unsafe { (api.session_restore)(model.get(), options, &io, out, error) }
        });
        call.conclude("read", made)
    }

    fn make(
        &self,
        model: &Model,
        call: impl FnOnce(
            &raw::optima_session_options,
            *mut *mut raw::optima_session,
            *mut *mut raw::optima_error,
        ) -> raw::optima_status,
    ) -> Result<Session, Error> {
        let api = model.api();
        let mut options = self.raw;
        if let Some(draft) = &self.draft {
            options.draft_model = draft.get();
        }
        let handle =
            Handle::make(api, api.session_destroy, |out, error| call(&options, out, error))?;
        let draft = self.draft.as_ref().map(|draft| Arc::clone(&draft.shared));
        Ok(Session::of(handle, Arc::clone(&model.shared), draft))
    }
}

/// Fields are dropped in this order: the handle before what it computes with.
pub(crate) struct SessionShared {
    pub handle: Handle<raw::optima_session>,
    pub model: Arc<ModelShared>,
    draft: Option<Arc<ModelShared>>,
}

impl SessionShared {
    pub fn api(&self) -> &'static raw::optima_api_v1 {
        self.model.engine.api
    }

    /// Room for the logits that a request asks for.
    pub fn logits_for(&self, request: &Request) -> Result<Vec<f32>, Error> {
        if request.logits_rows() == 0 {
            return Ok(Vec::new());
        }
        let mut info = raw::optima_model_info::default();
        // SAFETY: MT_SAFE; `info` says its size.
        check(self.api(), |error| unsafe {
            (self.api().model_get_info)(self.model.handle.get(), &mut info, error)
        })?;
        Ok(vec![0.0; request.logits_rows() * info.vocabulary as usize])
    }
}

/// One conversation: a sequence of tokens and their KV. It runs one request at a time and refuses
/// others with [`ErrorKind::Busy`]. A session whose stream is alive ends with the stream.
pub struct Session {
    pub(crate) shared: Arc<SessionShared>,
}

type Generate = unsafe extern "C" fn(
    *mut raw::optima_session,
    *const raw::optima_request_desc,
    *mut *mut raw::optima_result,
    *mut *mut raw::optima_error,
) -> raw::optima_status;

impl Session {
    fn of(
        handle: Handle<raw::optima_session>,
        model: Arc<ModelShared>,
        draft: Option<Arc<ModelShared>>,
    ) -> Session {
        Session { shared: Arc::new(SessionShared { handle, model, draft }) }
    }

    /// An empty session with the default options.
    pub fn new(model: &Model) -> Result<Session, Error> {
        SessionOptions::new().create(model)
    }

    /// Runs one request and returns when it is done.
    pub fn generate(&self, request: &Request) -> Result<Generation, Error> {
        let silent = |_: &Event| Verdict::Continue;
        self.run(self.api().generate, request, &Call::new(request, silent), None)
    }

    /// As `generate`; the closure gets each event on this thread and decides whether to go on.
    ///
    /// ```
    /// # let path = std::env::var("OPTIMA_TEST_MODEL").unwrap();
    /// # let engine = optima::Engine::new()?;
    /// # let model = optima::Model::open(&engine, &path)?;
    /// # let session = optima::Session::new(&model)?;
    /// let request = optima::Request::new("a garden").max_tokens(8);
    /// let mut text = String::new();
    /// let answer = session.generate_with(&request, |event| {
    ///     text += event.text();
    ///     optima::Verdict::Continue
    /// })?;
    /// assert_eq!(text, answer.text());
    /// # Ok::<(), optima::Error>(())
    /// ```
    pub fn generate_with<F>(&self, request: &Request, on_event: F) -> Result<Generation, Error>
    where
        F: FnMut(&Event) -> Verdict,
    {
        let call = Call::new(request, on_event);
        let on_event = Some(call.on_event_fn());
        self.run(self.api().generate, request, &call, on_event)
    }

    /// Starts a request whose events are taken one by one.
    pub fn stream(&self, request: &Request) -> Result<Stream, Error> {
        Stream::start(Arc::clone(&self.shared), request)
    }

    /// The embedding of the request's prompt, in a session with [`Output::Embedding`].
    pub fn embed(&self, request: &Request) -> Result<Vec<f32>, Error> {
        let silent = |_: &Event| Verdict::Continue;
        let made = self.run(self.api().embed, request, &Call::new(request, silent), None)?;
        Ok(made.embedding().to_vec())
    }

    /// Embeddings of texts, in their order, as many in one pass as fit. `how` has no prompt
    /// (`Request::default()`). All or nothing.
    pub fn embed_texts<S: AsRef<[u8]>>(
        &self,
        texts: &[S],
        how: &Request,
    ) -> Result<Vec<Vec<f32>>, Error> {
        let api = self.api();
        let starts: Vec<*const c_char> =
            texts.iter().map(|text| text.as_ref().as_ptr().cast()).collect();
        let bytes: Vec<usize> = texts.iter().map(|text| text.as_ref().len()).collect();
        let buffer = Handle::make(api, api.buffer_destroy, |out, error| {
            how.with_desc(&mut [], |desc| {
                let (texts, count) = (starts.as_ptr(), starts.len());
                // SAFETY: MT_SAFE; description, texts and places live for the call.
                unsafe {
                    (api.embed_texts)(self.get(), desc, texts, bytes.as_ptr(), count, out, error)
                }
            })
        })?;
        let mut count = 0;
        // SAFETY: MT_SAFE; the floats live as long as the buffer.
        let floats = unsafe { items((api.buffer_floats)(buffer.get(), &mut count), count) };
        let width = floats.len() / texts.len().max(1);
        Ok(floats.chunks(width.max(1)).map(<[f32]>::to_vec).collect())
    }

    fn run<F: FnMut(&Event) -> Verdict>(
        &self,
        generate: Generate,
        request: &Request,
        call: &Call<F>,
        on_event: Option<raw::optima_on_event_fn>,
    ) -> Result<Generation, Error> {
        let api = self.api();
        let mut logits = self.shared.logits_for(request)?;
        let made = request.with_desc(&mut logits, |desc| {
            desc.on_event = on_event;
            desc.on_logits = call.hooks.on_logits_fn();
            desc.user = call as *const Call<F> as *mut c_void;
            Handle::make(api, api.result_destroy, |out, error| {
                // SAFETY: MT_SAFE; all that the description points at lives for the call, at whose
                // end the request is done.
                unsafe { generate(self.get(), desc, out, error) }
            })
        });
        call.hooks.panic.resume();
        Generation::new(made?, api, logits).conclude(&Limits::of(request))
    }

    /// Another session that holds the same tokens; their memory is shared until one writes on.
    pub fn fork(&self) -> Result<Session, Error> {
        let api = self.api();
        let handle = Handle::make(api, api.session_destroy, |out, error| {
            // SAFETY: MT_SAFE; the session is live.
            unsafe { (api.session_fork)(self.get(), out, error) }
        })?;
        Ok(Session::of(handle, Arc::clone(&self.shared.model), self.shared.draft.clone()))
    }

    /// Most tokens that it holds.
    pub fn context_tokens(&self) -> i64 {
        // SAFETY: MT_SAFE; the session is live.
        unsafe { (self.api().session_context_tokens)(self.get()) }
    }

    /// The tokens that it holds, as of the last finished step.
    pub fn tokens(&self) -> Result<Vec<i32>, Error> {
        let api = self.api();
        let buffer = Handle::make(api, api.buffer_destroy, |out, error| {
            // SAFETY: MT_SAFE; the session is live.
            unsafe { (api.session_tokens)(self.get(), out, error) }
        })?;
        Ok(ids_of(api, &buffer))
    }

    /// What it holds of KV.
    pub fn kv(&self) -> Result<SessionKv, Error> {
        let mut out = SessionKv::default();
        // SAFETY: MT_SAFE; `out` says its size.
        check(self.api(), |error| unsafe {
            (self.api().session_kv_query)(self.get(), &mut out, error)
        })?;
        Ok(out)
    }

    /// Forgets all tokens and gives their memory back.
    pub fn reset(&self) -> Result<(), Error> {
        // SAFETY: MT_SAFE; the session is live.
        check(self.api(), |error| unsafe { (self.api().session_reset)(self.get(), error) })
    }

    /// Keeps the first tokens only.
    pub fn truncate(&self, tokens: usize) -> Result<(), Error> {
        let tokens = i64::try_from(tokens).unwrap_or(i64::MAX);
        // SAFETY: MT_SAFE; the session is live.
        check(self.api(), |error| unsafe {
            (self.api().session_truncate)(self.get(), tokens, error)
        })
    }

    /// Writes its tokens and KV into a file, which is there whole or not at all.
    pub fn save(&self, path: impl AsRef<path::Path>) -> Result<(), Error> {
        let path = path.as_ref().as_os_str().as_bytes();
        let (save, start) = (self.api().session_save_path, path.as_ptr().cast());
        // SAFETY: MT_SAFE; the path lives for the call.
        check(self.api(), |error| unsafe { save(self.get(), start, path.len(), error) })
    }

    /// As `save`, into a writer.
    pub fn save_to<W: Write>(&self, to: W) -> Result<(), Error> {
        let call = Transfer::new(to);
        let save = self.api().session_save;
        // SAFETY: MT_SAFE; the writer behind `user` lives for the call.
        let saved = check(self.api(), |error| unsafe {
            save(self.get(), Some(write_all::<W>), call.user(), error)
        });
        call.conclude("write", saved)
    }

    fn api(&self) -> &'static raw::optima_api_v1 {
        self.shared.api()
    }

    fn get(&self) -> *mut raw::optima_session {
        self.shared.handle.get()
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("context_tokens", &self.context_tokens())
            .finish_non_exhaustive()
    }
}

fn io_error(what: &str, why: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("session: {what}: {why}"))
}

/// `user` of a saving or restoring call, on its stack: the host's reader or writer.
struct Transfer<T> {
    panic: Panic,
    state: UnsafeCell<(T, Option<io::Error>)>,
}

impl<T> Transfer<T> {
    fn new(stream: T) -> Transfer<T> {
        Transfer { panic: Panic::default(), state: UnsafeCell::new((stream, None)) }
    }

    fn user(&self) -> *mut c_void {
        self as *const Transfer<T> as *mut c_void
    }

    /// What the call made of it; the stream's own error tells more than the library's.
    fn conclude<R>(self, what: &str, made: Result<R, Error>) -> Result<R, Error> {
        self.panic.resume();
        match (made, self.state.into_inner().1) {
            (Err(_), Some(why)) => Err(io_error(what, &why)),
            (made, _) => made,
        }
    }

    /// # Safety
    /// `user` is that of a call that runs on this thread, and no other `step` of it does.
    unsafe fn step(user: *mut c_void, run: impl FnOnce(&mut T) -> io::Result<()>) -> i32 {
        // SAFETY: the caller's promise.
        let (panic, state) = unsafe {
            let call = user as *const Transfer<T>;
            (&(*call).panic, &mut *(*call).state.get())
        };
        panic.catch(1, || match run(&mut state.0) {
            Ok(()) => 0,
            Err(why) => {
                state.1 = Some(why);
                1
            }
        })
    }
}

unsafe extern "C" fn write_all<W: Write>(
    user: *mut c_void,
    from: *const c_void,
    bytes: i64,
) -> i32 {
    // SAFETY: `user` is the saving call that this is called from, one call at a time; `from` has
    // `bytes` bytes.
    unsafe {
        let from = items(from.cast::<u8>(), bytes);
        Transfer::<W>::step(user, |to| to.write_all(from))
    }
}

unsafe extern "C" fn read_range<R: Read + Seek>(
    user: *mut c_void,
    into: *mut c_void,
    offset: i64,
    bytes: i64,
) -> i32 {
    // SAFETY: `user` is the restoring call that this is called from, one call at a time. `into` has
    // room for `bytes` bytes, which are set before a slice of them is made.
    unsafe {
        std::ptr::write_bytes(into.cast::<u8>(), 0, bytes as usize);
        let into = std::slice::from_raw_parts_mut(into.cast::<u8>(), bytes as usize);
        Transfer::<R>::step(user, |from| {
            from.seek(SeekFrom::Start(offset as u64))?;
            from.read_exact(into)
        })
    }
}
