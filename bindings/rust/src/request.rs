//! One generation or embedding as it is asked for.

use crate::cancel::CancelToken;
use crate::hooks::OnLogits;
use crate::raw;
use std::fmt;
use std::ops::ControlFlow;
use std::os::raw::c_char;
use std::sync::Arc;
use std::time::Duration;

/// What the output must look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grammar {
    /// One JSON value.
    Json,
    /// JSON that is valid under this schema.
    JsonSchema(String),
    /// A text of the rule `root` of this grammar, in llama.cpp's grammar language.
    Gbnf(String),
    /// A text that this regular expression matches as a whole.
    Regex(String),
}

/// How the hidden rows of a prompt become its embedding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Pooling {
    /// The model's own way.
    Model = raw::OPTIMA_POOLING_MODEL,
    /// The mean of all rows.
    Mean = raw::OPTIMA_POOLING_MEAN,
    /// The first token's row.
    Cls = raw::OPTIMA_POOLING_CLS,
    /// The last token's row.
    Last = raw::OPTIMA_POOLING_LAST,
}

/// Whether an embedding is divided by its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Normalise {
    /// As the model says.
    Model = raw::OPTIMA_NORMALISE_MODEL,
    /// The pooled vector as it is.
    Off = raw::OPTIMA_NORMALISE_OFF,
    /// Divided by its L2 norm.
    L2 = raw::OPTIMA_NORMALISE_L2,
}

#[derive(Clone, Debug, Default)]
enum Prompt {
    #[default]
    None,
    Text(Vec<u8>),
    Ids(Vec<i32>),
}

/// A prompt and how to go on from it. The defaults: greedy, until a stop or a full context.
///
/// ```
/// use optima::Request;
/// let request = Request::new("Once upon a time").max_tokens(64).temperature(0.8).seed(7);
/// ```
#[derive(Clone, Default)]
pub struct Request {
    /// Its pointers stay null; `with_desc` sets them in a copy.
    desc: raw::optima_request_desc,
    prompt: Prompt,
    stops: Vec<Vec<u8>>,
    stop_tokens: Vec<i32>,
    logit_bias: Vec<raw::optima_logit_bias>,
    logits_positions: Vec<i64>,
    dry_breakers: Vec<i32>,
    grammar: String,
    on_logits: Option<OnLogits>,
    cancel: Option<CancelToken>,
}

// SAFETY: `desc` has pointers, all of them null; everything else may be sent and shared.
unsafe impl Send for Request {}
// SAFETY: as for Send.
unsafe impl Sync for Request {}

/// Setters of scalar fields.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($($value:ident: $type:ty => $field:ident),*);)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $($value: $type),*) -> Request {
            $(self.desc.$field = $value;)*
            self
        }
    )*};
}

/// Setters of one flag.
macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident => $flag:ident;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self) -> Request {
            self.desc.flags |= raw::$flag;
            self
        }
    )*};
}

fn count(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

impl Request {
    /// A prompt of text, any bytes.
    pub fn new(prompt: impl AsRef<[u8]>) -> Request {
        Request { prompt: Prompt::Text(prompt.as_ref().to_vec()), ..Request::default() }
    }

    /// A prompt of token ids.
    pub fn from_ids(ids: &[i32]) -> Request {
        Request { prompt: Prompt::Ids(ids.to_vec()), ..Request::default() }
    }

    /// Most output tokens.
    #[must_use]
    pub fn max_tokens(mut self, tokens: usize) -> Request {
        self.desc.max_tokens = count(tokens);
        self
    }

    /// Ends the output with [`ErrorKind::Deadline`](crate::ErrorKind::Deadline) so long after the
    /// call, to the millisecond above.
    #[must_use]
    pub fn deadline(mut self, after: Duration) -> Request {
        let milliseconds = after.as_nanos().saturating_add(999_999) / 1_000_000;
        self.desc.deadline_ms = i64::try_from(milliseconds.max(1)).unwrap_or(i64::MAX);
        self
    }

    /// A latch that stops it.
    #[must_use]
    pub fn cancel(mut self, token: &CancelToken) -> Request {
        self.cancel = Some(token.clone());
        self
    }

    /// A string that ends the output and is not part of it; each call adds one.
    #[must_use]
    pub fn stop(mut self, text: impl AsRef<[u8]>) -> Request {
        self.stops.push(text.as_ref().to_vec());
        self
    }

    /// Further token ids that end the output.
    #[must_use]
    pub fn stop_tokens(mut self, tokens: &[i32]) -> Request {
        self.stop_tokens = tokens.to_vec();
        self
    }

    /// Adds to a token's logit; `f32::NEG_INFINITY` bans it. Each call adds one.
    #[must_use]
    pub fn logit_bias(mut self, token: i32, bias: f32) -> Request {
        self.logit_bias.push(raw::optima_logit_bias { token, bias });
        self
    }

    /// Restricts the output.
    #[must_use]
    pub fn grammar(mut self, grammar: Grammar) -> Request {
        (self.desc.grammar_kind, self.grammar) = match grammar {
            Grammar::Json => (raw::OPTIMA_GRAMMAR_JSON, String::new()),
            Grammar::JsonSchema(text) => (raw::OPTIMA_GRAMMAR_JSON_SCHEMA, text),
            Grammar::Gbnf(text) => (raw::OPTIMA_GRAMMAR_GBNF, text),
            Grammar::Regex(text) => (raw::OPTIMA_GRAMMAR_REGEX, text),
        };
        self
    }

    /// Changes the logits of each output token in place, on the thread that drives the engine; gets
    /// the tokens of prompt and output too. `Break` ends the request with
    /// [`ErrorKind::State`](crate::ErrorKind::State). Must not call into the engine.
    #[must_use]
    pub fn on_logits<F>(mut self, hook: F) -> Request
    where
        F: Fn(&mut [f32], &[i32]) -> ControlFlow<()> + Send + Sync + 'static,
    {
        self.on_logits = Some(Arc::new(hook));
        self
    }

    /// Ascending positions in the sequence of prompt and output whose logits
    /// [`Generation::logits`](crate::Generation::logits) shall hold.
    #[must_use]
    pub fn logits_positions(mut self, positions: &[i64]) -> Request {
        self.logits_positions = positions.to_vec();
        self
    }

    /// Reports the log-probabilities of the prompt's tokens from this position on.
    #[must_use]
    pub fn prompt_logprobs_from(mut self, position: usize) -> Request {
        self.desc.flags |= raw::OPTIMA_REQUEST_PROMPT_LOGPROBS;
        self.desc.prompt_logprobs_from = count(position);
        self
    }

    /// When the context is full, drops the older half of the tokens behind the first `keep` and
    /// goes on. 0 keeps 4.
    #[must_use]
    pub fn context_shift(mut self, keep: usize) -> Request {
        self.desc.flags |= raw::OPTIMA_REQUEST_CONTEXT_SHIFT;
        self.desc.shift_keep_tokens = count(keep);
        self
    }

    /// Most tokens that a step guesses and checks beside the next one, at most 32.
    #[must_use]
    pub fn draft_tokens(mut self, tokens: usize) -> Request {
        self.desc.draft_tokens = count(tokens);
        self
    }

    /// Tokens that no repetition goes across; see [`Request::dry`].
    #[must_use]
    pub fn dry_breakers(mut self, tokens: &[i32]) -> Request {
        self.dry_breakers = tokens.to_vec();
        self
    }

    /// How the embedding is made.
    #[must_use]
    pub fn embedding(mut self, pooling: Pooling, normalise: Normalise) -> Request {
        self.desc.pooling = pooling as i32;
        self.desc.normalise = normalise as i32;
        self
    }

    setters! {
        /// 0 is greedy.
        temperature(temperature: f32 => temperature);
        /// Keeps the most probable tokens up to this mass.
        top_p(mass: f32 => top_p);
        /// Keeps this many of the most probable tokens.
        top_k(tokens: i32 => top_k);
        /// Drops tokens less probable than this share of the best one.
        min_p(share: f32 => min_p);
        /// Locally typical sampling.
        typical_p(mass: f32 => typical_p);
        /// Drops logits more than this many standard deviations below the best.
        top_n_sigma(deviations: f32 => top_n_sigma);
        /// How often XTC drops all tokens above the threshold but the least probable of them.
        xtc(probability: f32 => xtc_probability, threshold: f32 => xtc_threshold);
        /// Mirostat 2: the surprise to aim at, in bits, and its learning rate (0 = 0.1).
        mirostat(tau: f32 => mirostat_tau, eta: f32 => mirostat_eta);
        /// Temperature varies by the entropy, up to `range` below and above (exponent 0 = 1).
        dynamic_temperature(range: f32 => dynamic_range, exponent: f32 => dynamic_exponent);
        /// Divides the logits of tokens that occurred.
        repetition_penalty(penalty: f32 => repetition_penalty);
        /// Subtracted once for a token that occurred.
        presence_penalty(penalty: f32 => presence_penalty);
        /// Subtracted for each occurrence.
        frequency_penalty(penalty: f32 => frequency_penalty);
        /// Last tokens that penalties look at; 0 = all.
        penalty_window(tokens: i32 => penalty_window);
        /// DRY: strength, growth with each repeated token (0 = 1.75), length that costs nothing
        /// (0 = 2), last tokens that it looks at (0 = all).
        dry(multiplier: f32 => dry_multiplier, base: f32 => dry_base,
            allowed_length: i32 => dry_allowed_length, window: i32 => dry_window);
        /// Seed of the random numbers.
        seed(seed: u64 => seed);
        /// How many most probable tokens to report beside each output token.
        logprobs(tokens: i32 => logprobs);
        /// Higher comes first, -100 to 100.
        priority(priority: i32 => priority);
    }

    flags! {
        /// The prompt continues after the session's tokens instead of being the whole context.
        append => OPTIMA_REQUEST_APPEND;
        /// Does not add BOS or EOS by the file's rule.
        no_add_special => OPTIMA_REQUEST_NO_ADD_SPECIAL;
        /// Special tokens written in the prompt stay characters.
        no_parse_special => OPTIMA_REQUEST_NO_PARSE_SPECIAL;
        /// End-of-generation tokens do not end the output.
        ignore_eos => OPTIMA_REQUEST_IGNORE_EOS;
        /// Control tokens appear in the text of the output.
        show_special => OPTIMA_REQUEST_SHOW_SPECIAL;
        /// Processes (and scores) the prompt, generates nothing.
        prompt_only => OPTIMA_REQUEST_PROMPT_ONLY;
    }

    pub(crate) fn scalars(&self) -> &raw::optima_request_desc {
        &self.desc
    }

    pub(crate) fn logits_hook(&self) -> Option<OnLogits> {
        self.on_logits.clone()
    }

    pub(crate) fn logits_rows(&self) -> usize {
        self.logits_positions.len()
    }

    /// Calls with the description whose pointers live for the call; `logits` is written to until
    /// the request is done.
    pub(crate) fn with_desc<R>(
        &self,
        logits: &mut [f32],
        call: impl FnOnce(&mut raw::optima_request_desc) -> R,
    ) -> R {
        let stops: Vec<*const c_char> = self.stops.iter().map(|s| s.as_ptr().cast()).collect();
        let stop_bytes: Vec<usize> = self.stops.iter().map(Vec::len).collect();
        let mut desc = self.desc;
        match &self.prompt {
            Prompt::None => {}
            Prompt::Text(text) => {
                desc.prompt = text.as_ptr().cast();
                desc.prompt_bytes = text.len();
            }
            Prompt::Ids(ids) => {
                desc.prompt_ids = ids.as_ptr();
                desc.prompt_id_count = ids.len();
            }
        }
        (desc.stops, desc.stop_bytes) = (stops.as_ptr(), stop_bytes.as_ptr());
        desc.stop_count = stops.len();
        desc.stop_tokens = self.stop_tokens.as_ptr();
        desc.stop_token_count = self.stop_tokens.len();
        desc.logit_bias = self.logit_bias.as_ptr();
        desc.logit_bias_count = self.logit_bias.len();
        desc.dry_breakers = self.dry_breakers.as_ptr();
        desc.dry_breaker_count = self.dry_breakers.len();
        if !self.logits_positions.is_empty() {
            desc.logits_positions = self.logits_positions.as_ptr();
            desc.logits_position_count = self.logits_positions.len();
            (desc.logits_out, desc.logits_capacity) = (logits.as_mut_ptr(), logits.len());
        }
        if desc.grammar_kind != raw::OPTIMA_GRAMMAR_NONE {
            desc.grammar = self.grammar.as_ptr().cast();
            desc.grammar_bytes = self.grammar.len();
        }
        desc.cancel = self.cancel.as_ref().map_or(std::ptr::null(), CancelToken::get);
        call(&mut desc)
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prompt = match &self.prompt {
            Prompt::None => String::new(),
            Prompt::Text(text) => String::from_utf8_lossy(text).into_owned(),
            Prompt::Ids(ids) => format!("{ids:?}"),
        };
        f.debug_struct("Request")
            .field("prompt", &prompt)
            .field("max_tokens", &self.desc.max_tokens)
            .field("temperature", &self.desc.temperature)
            .finish_non_exhaustive()
    }
}
