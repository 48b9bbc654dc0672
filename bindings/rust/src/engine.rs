//! Threads and memory.

use crate::error::{check, Error};
use crate::handle::{text, Handle};
use crate::hooks::Panic;
use crate::library::Library;
use crate::pump::Pump;
use crate::raw;
use crate::{Memory, Metrics};
use std::fmt;
use std::os::raw::{c_char, c_void};
use std::os::unix::io::{FromRawFd, OwnedFd};
use std::sync::Arc;

/// Who turns the engine for streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Drive {
    /// A thread of the library, started with the first stream.
    Library = raw::OPTIMA_DRIVE_LIBRARY,
    /// [`Engine::step`], and whoever waits for a stream's event.
    Host = raw::OPTIMA_DRIVE_HOST,
}

/// Severity of a log message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i32)]
pub enum LogLevel {
    /// Something failed.
    Error = raw::OPTIMA_LOG_ERROR,
    /// Something is not as asked.
    Warning = raw::OPTIMA_LOG_WARNING,
    /// What is done.
    Info = raw::OPTIMA_LOG_INFO,
    /// Details.
    Debug = raw::OPTIMA_LOG_DEBUG,
}

type Log = Arc<dyn Fn(LogLevel, &str) + Send + Sync>;

/// How an engine works.
///
/// ```
/// let engine = optima::EngineOptions::new().threads(1).memory_limit_bytes(1 << 28).create()?;
/// assert_eq!(engine.threads(), 1);
/// # Ok::<(), optima::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct EngineOptions {
    raw: raw::optima_engine_options,
    affinity: Vec<u64>,
    log: Option<Log>,
    library: Option<Library>,
}

// SAFETY: `raw` has pointers, all of them null until `create` sets them in a copy; everything else
// may be sent and shared.
unsafe impl Send for EngineOptions {}
// SAFETY: as for Send.
unsafe impl Sync for EngineOptions {}

impl EngineOptions {
    /// The defaults.
    pub fn new() -> EngineOptions {
        EngineOptions::default()
    }

    /// Takes this library instead of [`Library::load`].
    #[must_use]
    pub fn library(mut self, library: Library) -> EngineOptions {
        self.library = Some(library);
        self
    }

    /// Threads that compute. 0 = CPUs of the affinity mask, within the cgroup quota.
    #[must_use]
    pub fn threads(mut self, threads: i32) -> EngineOptions {
        self.raw.threads = threads;
        self
    }

    /// CPUs that the threads may run on.
    #[must_use]
    pub fn affinity(mut self, cpus: &[usize]) -> EngineOptions {
        let words = cpus.iter().max().map_or(0, |cpu| cpu / 64 + 1);
        self.affinity = vec![0; words];
        for cpu in cpus {
            self.affinity[cpu / 64] |= 1 << (cpu % 64);
        }
        self
    }

    /// Nice value added to the library's threads, 0 to 19.
    #[must_use]
    pub fn niceness(mut self, nice: i32) -> EngineOptions {
        self.raw.priority = nice;
        self
    }

    /// Who turns the engine for streams.
    #[must_use]
    pub fn drive(mut self, drive: Drive) -> EngineOptions {
        self.raw.drive = drive as i32;
        self
    }

    /// Most memory for weights read into memory, KV and activations. 0 = no limit.
    #[must_use]
    pub fn memory_limit_bytes(mut self, bytes: i64) -> EngineOptions {
        self.raw.memory_limit_bytes = bytes;
        self
    }

    /// Most memory for KV. 0 = half of what is free; with a memory limit that limit alone.
    #[must_use]
    pub fn kv_budget_bytes(mut self, bytes: i64) -> EngineOptions {
        self.raw.kv_budget_bytes = bytes;
        self
    }

    /// Of it, for KV that no session holds. 0 = a quarter, at most 512 MiB; -1 = none.
    #[must_use]
    pub fn kv_cached_bytes(mut self, bytes: i64) -> EngineOptions {
        self.raw.kv_cached_bytes = bytes;
        self
    }

    /// Most requests that wait to begin; one more is refused with
    /// [`ErrorKind::Busy`](crate::ErrorKind::Busy). 0 = no limit.
    #[must_use]
    pub fn queue_max(mut self, requests: i64) -> EngineOptions {
        self.raw.queue_max = requests;
        self
    }

    /// Gets messages of this severity and above, from any thread of the engine; must not call into
    /// it. A panic in it is told by the panic hook and goes no further: no call of the host led there.
    #[must_use]
    pub fn log<F>(mut self, least: LogLevel, log: F) -> EngineOptions
    where
        F: Fn(LogLevel, &str) + Send + Sync + 'static,
    {
        self.raw.log_level = least as i32;
        self.log = Some(Arc::new(log));
        self
    }

    /// Makes the engine and its threads.
    pub fn create(&self) -> Result<Engine, Error> {
        let library = match self.library {
            Some(library) => library,
            None => Library::load()?,
        };
        let api = library.api();
        let mut raw = self.raw;
        if !self.affinity.is_empty() {
            raw.affinity = self.affinity.as_ptr();
            raw.affinity_words = self.affinity.len();
        }
        if let Some(log) = &self.log {
            raw.log = Some(on_log);
            raw.log_user = Box::into_raw(Box::new(Arc::clone(log))).cast();
            raw.log_release = Some(release_log);
        }
        let handle = Handle::make(api, api.engine_destroy, |out, error| {
            // SAFETY: options and places live for the call; the log closure lives until its release
            // hook, which the library calls also when this fails.
            unsafe { (api.engine_create)(&raw, out, error) }
        })?;
        let drive = if raw.drive == raw::OPTIMA_DRIVE_HOST { Drive::Host } else { Drive::Library };
        let pump = Pump::default();
        Ok(Engine { shared: Arc::new(EngineShared { handle, api, library, drive, pump }) })
    }
}

impl fmt::Debug for EngineOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineOptions")
            .field("threads", &self.raw.threads)
            .field("memory_limit_bytes", &self.raw.memory_limit_bytes)
            .finish_non_exhaustive()
    }
}

unsafe extern "C" fn on_log(user: *mut c_void, level: i32, message: *const c_char, bytes: usize) {
    let level = match level {
        raw::OPTIMA_LOG_ERROR => LogLevel::Error,
        raw::OPTIMA_LOG_WARNING => LogLevel::Warning,
        raw::OPTIMA_LOG_INFO => LogLevel::Info,
        _ => LogLevel::Debug,
    };
    // SAFETY: `user` is the closure that `create` boxed, and is released later; the message has
    // `bytes` bytes.
    Panic::default().catch((), || unsafe {
        (*(user as *const Log))(level, text(message, bytes as i64));
    });
}

unsafe extern "C" fn release_log(user: *mut c_void) {
    // SAFETY: the box that `create` gave away; the library calls this once.
    drop(unsafe { Box::from_raw(user as *mut Log) });
}

pub(crate) struct EngineShared {
    pub handle: Handle<raw::optima_engine>,
    pub api: &'static raw::optima_api_v1,
    pub library: Library,
    pub drive: Drive,
    pub pump: Pump,
}

impl EngineShared {
    pub fn step(&self) -> Result<bool, Error> {
        let mut worked = 0;
        // SAFETY: MT_SAFE; the engine is live.
        check(self.api, |error| unsafe { (self.api.step)(self.handle.get(), &mut worked, error) })?;
        Ok(worked != 0)
    }
}

/// Owns threads and memory, loads models, runs requests. Clones are the same engine; it ends with
/// the last of them and of its models, sessions and streams.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<EngineShared>,
}

impl Engine {
    /// An engine with the defaults: all CPUs, no memory limit.
    pub fn new() -> Result<Engine, Error> {
        EngineOptions::new().create()
    }

    /// The library that it runs in.
    pub fn library(&self) -> Library {
        self.shared.library
    }

    /// Threads that compute.
    pub fn threads(&self) -> i32 {
        // SAFETY: MT_SAFE; the engine is live.
        unsafe { (self.shared.api.engine_threads)(self.shared.handle.get()) }
    }

    /// One turn of an engine with [`Drive::Host`]; whether there was something to do.
    pub fn step(&self) -> Result<bool, Error> {
        self.shared.step()
    }

    /// Its memory, as of now.
    pub fn memory(&self) -> Result<Memory, Error> {
        let (shared, mut out) = (&self.shared, Memory::default());
        // SAFETY: MT_SAFE; `out` says its size.
        check(shared.api, |error| unsafe {
            (shared.api.mem_query)(shared.handle.get(), &mut out, error)
        })?;
        Ok(out)
    }

    /// What it does and has done, as of now.
    pub fn metrics(&self) -> Result<Metrics, Error> {
        let (shared, mut out) = (&self.shared, Metrics::default());
        // SAFETY: MT_SAFE; `out` says its size.
        check(shared.api, |error| unsafe {
            (shared.api.metrics_query)(shared.handle.get(), &mut out, error)
        })?;
        Ok(out)
    }

    /// The same as Prometheus text, every line with the label `engine` of this value.
    pub fn metrics_text(&self, label: &str) -> Result<String, Error> {
        let (shared, api) = (&self.shared, self.shared.api);
        let buffer = Handle::make(api, api.buffer_destroy, |out, error| {
            let (names, start) = (raw::OPTIMA_METRICS_NATIVE, label.as_ptr().cast());
            // SAFETY: MT_SAFE; the label lives for the call.
            unsafe {
                (api.metrics_render)(shared.handle.get(), names, start, label.len(), out, error)
            }
        })?;
        let mut bytes = 0;
        // SAFETY: MT_SAFE; the text lives as long as the buffer.
        Ok(unsafe { text((api.buffer_text)(buffer.get(), &mut bytes), bytes) }.into())
    }

    /// A descriptor for event loops, readable exactly while a stream's event can be taken.
    pub fn wakeup_fd(&self) -> Result<OwnedFd, Error> {
        let (shared, mut fd) = (&self.shared, -1);
        // SAFETY: MT_SAFE; the engine is live.
        check(shared.api, |error| unsafe {
            (shared.api.engine_wakeup_fd)(shared.handle.get(), &mut fd, error)
        })?;
        // SAFETY: a new descriptor, which belongs to the caller.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("threads", &self.threads()).finish_non_exhaustive()
    }
}
