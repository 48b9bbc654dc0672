//! A loaded model file.

use crate::chat::Chat;
use crate::engine::{Engine, EngineShared};
use crate::error::{check, Error};
use crate::handle::{items, text, Handle};
use crate::hooks::Panic;
use crate::raw;
use crate::request::Request;
use crate::ModelInfo;
use std::ffi::CStr;
use std::fmt;
use std::ops::ControlFlow;
use std::os::raw::c_void;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// How much of a file is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Content {
    /// All of it.
    Full = raw::OPTIMA_CONTENT_FULL,
    /// Metadata and tokenizer of any architecture; no session can be made.
    Vocabulary = raw::OPTIMA_CONTENT_VOCABULARY,
}

/// What becomes of weights of 16 and 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Weights {
    /// They are used as the file has them.
    AsIs = raw::OPTIMA_WEIGHTS_AS_IS,
    /// Quantised to 8 bits.
    Q8_0 = raw::OPTIMA_WEIGHTS_Q8_0,
    /// Quantised to 4 bits, embedding and head to 8.
    Q4_0 = raw::OPTIMA_WEIGHTS_Q4_0,
}

/// Whether weights of 4 and 8 bits are held a second time, in a faster form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Repack {
    /// If they take at most half of the memory that is free.
    WhenFree = raw::OPTIMA_REPACK_WHEN_FREE,
    /// Never.
    Off = raw::OPTIMA_REPACK_OFF,
    /// Always; creating a session fails where they do not fit.
    On = raw::OPTIMA_REPACK_ON,
}

/// A metadata value of the file. Text that is not UTF-8 has replacement characters.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
#[non_exhaustive]
pub enum Metadata {
    Integer(i64),
    Real(f64),
    Boolean(bool),
    Text(String),
    List(Vec<Metadata>),
}

type Progress = Arc<dyn Fn(f32) -> ControlFlow<()> + Send + Sync>;

/// How a model is opened.
#[derive(Clone, Default)]
pub struct ModelOptions {
    raw: raw::optima_model_options,
    progress: Option<Progress>,
}

// SAFETY: `raw` has pointers, all of them null until an open call sets them in a copy; the closure
// may be sent and shared.
unsafe impl Send for ModelOptions {}
// SAFETY: as for Send.
unsafe impl Sync for ModelOptions {}

impl ModelOptions {
    /// The defaults.
    pub fn new() -> ModelOptions {
        ModelOptions::default()
    }

    /// How much of the file is loaded.
    #[must_use]
    pub fn content(mut self, content: Content) -> ModelOptions {
        self.raw.content = content as i32;
        self
    }

    /// Whether weights are quantised.
    #[must_use]
    pub fn weights(mut self, weights: Weights) -> ModelOptions {
        self.raw.weights = weights as i32;
        self
    }

    /// Whether weights are held in a faster form too.
    #[must_use]
    pub fn repack(mut self, repack: Repack) -> ModelOptions {
        self.raw.repack = repack as i32;
        self
    }

    /// Called with the part that is loaded, 0 to 1, on the opening thread; `Break` ends the loading
    /// with [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled).
    #[must_use]
    pub fn progress<F>(mut self, progress: F) -> ModelOptions
    where
        F: Fn(f32) -> ControlFlow<()> + Send + Sync + 'static,
    {
        self.progress = Some(Arc::new(progress));
        self
    }

    /// Opens a GGUF file (of a split set any of its files) or a Hugging Face folder, memory-mapped.
    pub fn open(&self, engine: &Engine, path: impl AsRef<Path>) -> Result<Model, Error> {
        let path = path.as_ref().as_os_str().as_bytes();
        let shared = &engine.shared;
        self.make(engine, Vec::new(), |_, options, out, error| {
            let (open, start) = (shared.api.model_open_path, path.as_ptr().cast());
            // SAFETY: MT_SAFE; path, options and places live for the call.
            unsafe { open(shared.handle.get(), start, path.len(), options, out, error) }
        })
    }

    /// Opens a file's content in memory, which is kept as long as the model is.
    pub fn open_bytes(&self, engine: &Engine, data: Vec<u8>) -> Result<Model, Error> {
        let shared = &engine.shared;
        self.make(engine, data, |data, options, out, error| {
            let (open, start) = (shared.api.model_open_memory, data.as_ptr().cast());
            // SAFETY: MT_SAFE; the model keeps the data behind its handle, and its sessions keep
            // the model.
            unsafe { open(shared.handle.get(), start, data.len(), options, out, error) }
        })
    }

    fn make(
        &self,
        engine: &Engine,
        data: Vec<u8>,
        open: impl FnOnce(
            &[u8],
            &raw::optima_model_options,
            *mut *mut raw::optima_model,
            *mut *mut raw::optima_error,
        ) -> raw::optima_status,
    ) -> Result<Model, Error> {
        let api = engine.shared.api;
        let mut options = self.raw;
        let watch = Watch { panic: Panic::default(), progress: self.progress.as_ref() };
        if self.progress.is_some() {
            options.progress = Some(on_progress);
            options.user = &watch as *const Watch<'_> as *mut c_void;
        }
        let data = Arc::new(data);
        let made =
            Handle::make(api, api.model_destroy, |out, error| open(&data, &options, out, error));
        watch.panic.resume();
        let engine = Arc::clone(&engine.shared);
        Ok(Model { shared: Arc::new(ModelShared { handle: made?, _data: data, engine }) })
    }
}

impl fmt::Debug for ModelOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelOptions")
            .field("content", &self.raw.content)
            .field("weights", &self.raw.weights)
            .field("repack", &self.raw.repack)
            .finish_non_exhaustive()
    }
}

/// `user` of an opening call, on its stack.
struct Watch<'a> {
    panic: Panic,
    progress: Option<&'a Progress>,
}

unsafe extern "C" fn on_progress(user: *mut c_void, fraction: f32) -> i32 {
    // SAFETY: `user` is the `Watch` of the opening call that this is called from.
    let watch = unsafe { &*(user as *const Watch<'_>) };
    watch.panic.catch(1, || match watch.progress {
        Some(progress) if progress(fraction).is_break() => 1,
        _ => 0,
    })
}

/// Fields are dropped in this order: the handle before what it reads and runs in.
pub(crate) struct ModelShared {
    pub handle: Handle<raw::optima_model>,
    _data: Arc<Vec<u8>>,
    pub engine: Arc<EngineShared>,
}

/// A loaded model: weights, tokenizer, metadata. Read-only; clones are the same model.
#[derive(Clone)]
pub struct Model {
    pub(crate) shared: Arc<ModelShared>,
}

impl Model {
    /// Opens a GGUF file or a Hugging Face folder with the default options.
    pub fn open(engine: &Engine, path: impl AsRef<Path>) -> Result<Model, Error> {
        ModelOptions::new().open(engine, path)
    }

    /// Sizes and special tokens.
    pub fn info(&self) -> Result<ModelInfo, Error> {
        let mut out = ModelInfo::default();
        // SAFETY: MT_SAFE; `out` says its size.
        check(self.api(), |error| unsafe {
            (self.api().model_get_info)(self.get(), &mut out, error)
        })?;
        Ok(out)
    }

    /// Such as "llama"; empty when the file does not say.
    pub fn architecture(&self) -> &str {
        // SAFETY: MT_SAFE; NUL-terminated, lives as long as the handle.
        let name = unsafe { CStr::from_ptr((self.api().model_architecture)(self.get())) };
        name.to_str().unwrap_or_default()
    }

    /// The file's chat template; empty when it has none.
    pub fn chat_template(&self) -> String {
        let mut bytes = 0;
        // SAFETY: MT_SAFE; lives as long as the handle.
        let source = unsafe {
            items((self.api().model_chat_template)(self.get(), &mut bytes).cast::<u8>(), bytes)
        };
        String::from_utf8_lossy(source).into_owned()
    }

    /// A metadata value; none for an absent key.
    pub fn metadata(&self, key: &str) -> Result<Option<Metadata>, Error> {
        let mut found = raw::optima_metadata::default();
        // SAFETY: MT_SAFE; `found` says its size, the key lives for the call.
        check(self.api(), |error| unsafe {
            let find = self.api().model_metadata_find;
            find(self.get(), key.as_ptr().cast(), key.len(), &mut found, error)
        })?;
        if (raw::OPTIMA_METADATA_INTEGERS..=raw::OPTIMA_METADATA_STRINGS).contains(&found.kind) {
            let list = (0..found.count).map(|item| self.metadata_item(found.index, item));
            return list.collect::<Result<_, _>>().map(|list| Some(Metadata::List(list)));
        }
        Ok(single(&found))
    }

    fn metadata_item(&self, index: i64, item: i64) -> Result<Metadata, Error> {
        let mut found = raw::optima_metadata::default();
        // SAFETY: MT_SAFE; `found` says its size.
        check(self.api(), |error| unsafe {
            (self.api().model_metadata_item)(self.get(), index, item, &mut found, error)
        })?;
        Ok(single(&found).expect("an item of a list is a single value"))
    }

    /// Token ids of a text, any bytes, with BOS or EOS by the file's rule.
    ///
    /// ```
    /// # let path = std::env::var("OPTIMA_TEST_MODEL").unwrap();
    /// # let engine = optima::Engine::new()?;
    /// let model = optima::Model::open(&engine, &path)?;
    /// let ids = model.tokenize("a garden")?;
    /// assert_eq!(model.detokenize(&ids)?, b"a garden");
    /// # Ok::<(), optima::Error>(())
    /// ```
    pub fn tokenize(&self, text: impl AsRef<[u8]>) -> Result<Vec<i32>, Error> {
        self.tokenize_with(text, 0)
    }

    /// As `tokenize`, with `raw::OPTIMA_TEXT_` flags.
    pub fn tokenize_with(&self, text: impl AsRef<[u8]>, flags: u32) -> Result<Vec<i32>, Error> {
        let (api, text) = (self.api(), text.as_ref());
        let buffer = Handle::make(api, api.buffer_destroy, |out, error| {
            let (call, start) = (api.model_tokenize, text.as_ptr().cast());
            // SAFETY: MT_SAFE; the text lives for the call.
            unsafe { call(self.get(), start, text.len(), flags, out, error) }
        })?;
        Ok(ids_of(api, &buffer))
    }

    /// Bytes of token ids; control tokens have none.
    pub fn detokenize(&self, ids: &[i32]) -> Result<Vec<u8>, Error> {
        self.detokenize_with(ids, 0)
    }

    /// As `detokenize`, with `raw::OPTIMA_TEXT_` flags.
    pub fn detokenize_with(&self, ids: &[i32], flags: u32) -> Result<Vec<u8>, Error> {
        let api = self.api();
        let buffer = Handle::make(api, api.buffer_destroy, |out, error| {
            let call = api.model_detokenize;
            // SAFETY: MT_SAFE; the ids live for the call.
            unsafe { call(self.get(), ids.as_ptr(), ids.len(), flags, out, error) }
        })?;
        let mut bytes = 0;
        // SAFETY: MT_SAFE; the bytes live as long as the buffer.
        Ok(unsafe { items((api.buffer_text)(buffer.get(), &mut bytes).cast(), bytes) }.to_vec())
    }

    /// Id of the token that the vocabulary writes so.
    pub fn token_id(&self, text: &str) -> Option<i32> {
        let find = self.api().model_token_find;
        // SAFETY: MT_SAFE; the text lives for the call.
        let id = unsafe { find(self.get(), text.as_ptr().cast(), text.len()) };
        Some(id).filter(|&id| id >= 0)
    }

    /// A conversation as a prompt, by the chat template.
    pub fn render(&self, chat: &Chat) -> Result<String, Error> {
        let api = self.api();
        let buffer = Handle::make(api, api.buffer_destroy, |out, error| {
            // SAFETY: MT_SAFE; the description lives for the call.
            chat.with_desc(|desc| unsafe { (api.model_render)(self.get(), desc, out, error) })
        })?;
        let mut bytes = 0;
        // SAFETY: MT_SAFE; the text lives as long as the buffer.
        Ok(unsafe { text((api.buffer_text)(buffer.get(), &mut bytes), bytes) }.into())
    }

    /// A request whose prompt is the conversation; the template wrote its special tokens.
    pub fn chat(&self, chat: &Chat) -> Result<Request, Error> {
        Ok(Request::new(self.render(chat)?).no_add_special())
    }

    pub(crate) fn api(&self) -> &'static raw::optima_api_v1 {
        self.shared.engine.api
    }

    pub(crate) fn get(&self) -> *mut raw::optima_model {
        self.shared.handle.get()
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model").field("architecture", &self.architecture()).finish_non_exhaustive()
    }
}

pub(crate) fn ids_of(api: &raw::optima_api_v1, buffer: &Handle<raw::optima_buffer>) -> Vec<i32> {
    let mut count = 0;
    // SAFETY: MT_SAFE; the ids live as long as the buffer.
    unsafe { items((api.buffer_ids)(buffer.get(), &mut count), count) }.to_vec()
}

/// A value that is no list; none for an absent one.
fn single(found: &raw::optima_metadata) -> Option<Metadata> {
    match found.kind {
        raw::OPTIMA_METADATA_INTEGER => Some(Metadata::Integer(found.integer)),
        raw::OPTIMA_METADATA_REAL => Some(Metadata::Real(found.real)),
        raw::OPTIMA_METADATA_BOOLEAN => Some(Metadata::Boolean(found.integer != 0)),
        raw::OPTIMA_METADATA_STRING => {
            // SAFETY: the text lives as long as the model handle, which the caller holds.
            let text = unsafe { items(found.string.cast::<u8>(), found.string_bytes) };
            Some(Metadata::Text(String::from_utf8_lossy(text).into_owned()))
        }
        _ => None,
    }
}
