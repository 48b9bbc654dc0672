//! Failures as the crate's own errors, with the numbers.
use crate::support::{endless, engine, open, path_of, session};
use optima::{EngineOptions, ErrorKind, Model, Output, Request, Session, SessionOptions, Verdict};
use std::time::Duration;

#[test]
fn a_wrong_path_is_an_io_error_that_names_it() {
    let error = Model::open(&engine(), path_of("no such model.gguf")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("no such model.gguf"), "{error}");
    let error = Model::open(&engine(), path_of("README.md")).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Format | ErrorKind::Unsupported), "{error:?}");
}

#[test]
fn a_prompt_that_does_not_fit_has_both_numbers() {
    let session = session();
    for made in [
        session.generate(&Request::from_ids(&[80; 300])),
        session.stream(&Request::from_ids(&[80; 300])).and_then(|stream| stream.finish()),
    ] {
        let error = made.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ContextFull);
        assert_eq!((error.needed(), error.limit()), (Some(300), Some(256)), "{error:?}");
        assert!(error.partial().is_none());
    }
}

#[test]
fn a_deadline_is_an_error_with_its_limit_and_what_there_was() {
    let session = session();
    let request = endless("a").deadline(Duration::from_micros(19_500));
    let mut tokens = 0;
    let heard = session.generate_with(&request, |event| {
        tokens += i64::from(event.token().is_some());
        Verdict::Continue
    });
    let error = heard.unwrap_err();
    assert_eq!((error.kind(), error.limit()), (ErrorKind::Deadline, Some(20)));
    assert_eq!(error.free(), Some(tokens));
    assert_eq!(error.partial().unwrap().token_ids().len(), tokens as usize);
    let error = session.stream(&request).unwrap().finish().unwrap_err();
    assert_eq!((error.kind(), error.limit()), (ErrorKind::Deadline, Some(20)));
    assert!(error.to_string().contains("20 ms"), "{error}");
}

#[test]
fn memory_that_is_not_there_has_the_numbers() {
    let limit = 1 << 16;
    let engine = EngineOptions::new().threads(1).memory_limit_bytes(limit).create().unwrap();
    let model = open(&engine, "llama-q8_0");
    let made = Session::new(&model).and_then(|session| session.generate(&Request::new("a")));
    let error = made.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    let (needed, free) = (error.needed().unwrap(), error.free().unwrap());
    assert!(needed > free && free <= limit, "{error:?}");
}

#[test]
fn a_session_that_runs_refuses_a_second_request() {
    let session = session();
    let stream = session.stream(&endless("a")).unwrap();
    assert_eq!(session.generate(&Request::new("b")).unwrap_err().kind(), ErrorKind::Busy);
    drop(stream);
    assert_eq!(session.generate(&Request::new("b").max_tokens(2)).unwrap().token_ids().len(), 2);
}

#[test]
fn a_full_queue_has_its_limit() {
    let engine = EngineOptions::new().threads(1).queue_max(1).create().unwrap();
    let model = open(&engine, "llama-q8_0");
    let session = SessionOptions::new().output(Output::Embedding).create(&model).unwrap();
    let error = session.embed_texts(&["a", "b", "c"], &Request::default()).unwrap_err();
    assert_eq!((error.kind(), error.limit()), (ErrorKind::Busy, Some(1)), "{error:?}");
}

#[test]
fn wrong_arguments_are_refused() {
    let error = EngineOptions::new().threads(-1).create().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Argument);
    let session = session();
    assert_eq!(session.generate(&Request::default()).unwrap_err().kind(), ErrorKind::Argument);
    let error = session.generate(&Request::new("a").temperature(-1.0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Argument);
    let error = session.generate(&Request::from_ids(&[1_000_000])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Argument);
}
