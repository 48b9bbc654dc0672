//! The binding on tiny models. OPTIMA_TEST_MODELS names their folder; the library is found by the
//! loader's search.
mod callbacks;
mod errors;
mod lifetime;
mod streams;
mod support;
mod text;
