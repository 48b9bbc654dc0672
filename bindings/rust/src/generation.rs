//! What a request produced.

use crate::error::{check, Error, ErrorKind};
use crate::handle::{items, text, Handle};
use crate::raw;
use crate::request::Request;
use crate::Counters;
use std::fmt;

/// Why a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finish {
    /// It has not ended.
    None,
    /// An end-of-generation token, or one of [`Request::stop_tokens`].
    Stop,
    /// A string of [`Request::stop`]; [`Generation::stop_index`] says which.
    StopString,
    /// All tokens that were asked for were generated.
    Length,
    /// The context is full.
    Context,
    /// The closure answered [`Verdict::Stop`](crate::Verdict::Stop).
    Host,
    /// Cancelled.
    Cancelled,
    /// The deadline passed.
    Deadline,
    /// It failed.
    Error,
    /// The embedding is there.
    Embedded,
    /// One that a later release introduced.
    Other(i32),
}

impl Finish {
    pub(crate) fn of(finish: raw::optima_finish) -> Finish {
        match finish {
            raw::OPTIMA_FINISH_NONE => Finish::None,
            raw::OPTIMA_FINISH_STOP => Finish::Stop,
            raw::OPTIMA_FINISH_STOP_STRING => Finish::StopString,
            raw::OPTIMA_FINISH_LENGTH => Finish::Length,
            raw::OPTIMA_FINISH_CONTEXT => Finish::Context,
            raw::OPTIMA_FINISH_HOST => Finish::Host,
            raw::OPTIMA_FINISH_CANCELLED => Finish::Cancelled,
            raw::OPTIMA_FINISH_DEADLINE => Finish::Deadline,
            raw::OPTIMA_FINISH_ERROR => Finish::Error,
            raw::OPTIMA_FINISH_EMBEDDED => Finish::Embedded,
            other => Finish::Other(other),
        }
    }
}

/// What a finished request produced. Immutable; independent of its session and engine.
pub struct Generation {
    result: Handle<raw::optima_result>,
    api: &'static raw::optima_api_v1,
    logits: Vec<f32>,
}

/// An accessor of a result that returns a pointer and writes the number of items.
macro_rules! slices {
    ($($(#[$doc:meta])* $name:ident: $item:ty => $function:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(&self) -> &[$item] {
            let mut count = 0;
            // SAFETY: MT_SAFE; what it returns lives as long as the result and never changes.
            unsafe { items((self.api.$function)(self.result.get(), &mut count).cast(), count) }
        }
    )*};
}

impl Generation {
    pub(crate) fn new(
        result: Handle<raw::optima_result>,
        api: &'static raw::optima_api_v1,
        logits: Vec<f32>,
    ) -> Generation {
        Generation { result, api, logits }
    }

    /// Why it ended.
    pub fn finish(&self) -> Finish {
        // SAFETY: MT_SAFE; the result is live.
        Finish::of(unsafe { (self.api.result_finish)(self.result.get()) })
    }

    /// Which of the stop strings ended it.
    pub fn stop_index(&self) -> Option<usize> {
        // SAFETY: MT_SAFE; the result is live.
        usize::try_from(unsafe { (self.api.result_stop_index)(self.result.get()) }).ok()
    }

    /// The output's text: whole characters, without the stop string.
    pub fn text(&self) -> &str {
        let mut bytes = 0;
        // SAFETY: MT_SAFE; the text lives as long as the result and never changes.
        unsafe { text((self.api.result_text)(self.result.get(), &mut bytes), bytes) }
    }

    slices! {
        /// The bytes of the output's tokens, as they are.
        bytes: u8 => result_bytes;
        /// The prompt's token ids.
        prompt_ids: i32 => result_prompt_ids;
        /// The output's token ids.
        token_ids: i32 => result_token_ids;
        /// Log-probability of each output token.
        logprobs: f32 => result_logprobs;
        /// Log-probabilities of prompt tokens, from [`Request::prompt_logprobs_from`] on.
        prompt_logprobs: f32 => result_prompt_logprobs;
        /// The embedding; empty when it is none.
        embedding: f32 => result_embedding;
    }

    /// Most probable tokens at an output index, best first.
    pub fn top_logprobs(&self, index: usize) -> &[raw::optima_token_logprob] {
        let (mut count, index) = (0, index as i64);
        // SAFETY: MT_SAFE; what it returns lives as long as the result and never changes.
        unsafe {
            items((self.api.result_top_logprobs)(self.result.get(), index, &mut count), count)
        }
    }

    /// Rows of logits, one after another, for each of [`Request::logits_positions`].
    pub fn logits(&self) -> &[f32] {
        &self.logits
    }

    /// What it cost.
    pub fn counters(&self) -> Counters {
        let mut out = Counters::default();
        // SAFETY: MT_SAFE; the result is live, `out` says its size.
        let counted = check(self.api, |error| unsafe {
            (self.api.result_counters)(self.result.get(), &mut out, error)
        });
        counted.expect("a live result has counters");
        out
    }

    /// An error when the request did not come to an end of its own.
    pub(crate) fn conclude(self, request: &Limits) -> Result<Generation, Error> {
        let tokens = self.token_ids().len() as i64;
        match self.finish() {
            Finish::Deadline => {
                let limit = request.deadline_ms;
                let text = format!("the deadline of {limit} ms passed after {tokens} tokens");
                let numbers = [request.max_tokens, Some(tokens), Some(limit)];
                Err(Error::ended(ErrorKind::Deadline, text, numbers, self))
            }
            Finish::Cancelled => {
                let text = format!("cancelled after {tokens} tokens");
                let numbers = [request.max_tokens, Some(tokens), None];
                Err(Error::ended(ErrorKind::Cancelled, text, numbers, self))
            }
            _ => Ok(self),
        }
    }
}

/// What a request asked for, for the numbers of an error.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub deadline_ms: i64,
    pub max_tokens: Option<i64>,
}

impl Limits {
    pub fn of(request: &Request) -> Limits {
        let desc = request.scalars();
        let max_tokens = Some(desc.max_tokens).filter(|&tokens| tokens > 0);
        Limits { deadline_ms: desc.deadline_ms, max_tokens }
    }
}

impl fmt::Debug for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generation")
            .field("finish", &self.finish())
            .field("text", &self.text())
            .finish()
    }
}
