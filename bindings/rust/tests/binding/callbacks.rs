//! Closures that the library calls: panics, re-entrancy, hooks.
use crate::support::{endless, engine, open, path_of, session, Golden};
use optima::{
    EngineOptions, ErrorKind, EventKind, LogLevel, ModelOptions, Request, Session, Verdict,
};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex};

/// Runs it with the panic hook silent and gives the panic's text.
fn panic_of<R>(run: impl FnOnce() -> R) -> String {
    let payload = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(_) => panic!("it did not panic"),
        Err(payload) => payload,
    };
    payload.downcast_ref::<&str>().expect("a text").to_string()
}

/// The session does what it did before.
fn assert_usable(session: &Session) {
    let golden = Golden::of("llama-q8_0");
    let made = session.generate(&Request::new(golden.text("prompt")).max_tokens(24)).unwrap();
    assert_eq!(made.token_ids(), golden.ids("continuation_ids"));
}

#[test]
fn a_panic_in_a_closure_comes_out_of_the_call_and_leaves_the_session_usable() {
    let session = session();
    let mut tokens = 0;
    let text = panic_of(|| {
        session.generate_with(&endless("a"), |event| {
            tokens += usize::from(event.kind() == EventKind::Token);
            assert_ne!(tokens, 3, "never shown");
            if tokens == 2 {
                panic!("out of the closure");
            }
            Verdict::Continue
        })
    });
    assert_eq!((text.as_str(), tokens), ("out of the closure", 2));
    assert_usable(&session);
}

#[test]
fn a_panic_in_a_logits_hook_comes_out_of_generate_and_of_a_stream() {
    let session = session();
    let request = endless("a").on_logits(|_, tokens| {
        if tokens.len() > 3 {
            panic!("out of the hook");
        }
        ControlFlow::Continue(())
    });
    assert_eq!(panic_of(|| session.generate(&request)), "out of the hook");
    assert_usable(&session);
    let stream = session.stream(&request).unwrap();
    assert_eq!(panic_of(|| stream.finish()), "out of the hook");
    assert_usable(&session);
}

#[test]
fn a_panic_in_a_writer_or_in_progress_comes_out_too() {
    struct Broken;
    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            panic!("out of the writer")
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let engine = engine();
    let session = Session::new(&open(&engine, "llama-q8_0")).unwrap();
    assert_usable(&session);
    assert_eq!(panic_of(|| session.save_to(Broken)), "out of the writer");
    assert_usable(&session);
    let options = ModelOptions::new().progress(|_| panic!("out of progress"));
    let path = path_of("llama-q8_0.gguf");
    assert_eq!(panic_of(|| options.open(&engine, &path)), "out of progress");
    let options = ModelOptions::new().progress(|_| ControlFlow::Break(()));
    let error = options.open(&engine, &path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}

#[test]
fn calls_from_inside_a_closure_are_refused_as_busy() {
    let engine = engine();
    let model = open(&engine, "llama-q8_0");
    let (session, other) = (Session::new(&model).unwrap(), Session::new(&model).unwrap());
    let mut waiting = Some(other.stream(&Request::new("the sea").max_tokens(200)).unwrap());
    let mut kinds = Vec::new();
    let made = session.generate_with(&Request::new("a").max_tokens(3), |event| {
        if event.kind() == EventKind::Token && kinds.is_empty() {
            let request = Request::new("b").max_tokens(1);
            kinds.push(session.generate(&request).unwrap_err().kind());
            kinds.push(session.stream(&request).unwrap_err().kind());
            kinds.push(session.reset().unwrap_err().kind());
            drop(waiting.take());
        }
        Verdict::Continue
    });
    assert_eq!(made.unwrap().token_ids().len(), 3);
    assert_eq!(kinds, [ErrorKind::Busy; 3]);
    assert_usable(&session);
    assert_usable(&other);
}

#[test]
fn a_logits_hook_chooses_and_ends() {
    let session = session();
    let ban = |logits: &mut [f32], _: &[i32]| {
        logits.iter_mut().enumerate().filter(|(id, _)| *id != 80).for_each(|(_, logit)| {
            *logit = f32::NEG_INFINITY;
        });
        ControlFlow::Continue(())
    };
    let request = Request::new("a").max_tokens(4);
    let made = session.generate(&request.clone().on_logits(ban)).unwrap();
    assert_eq!(made.token_ids(), [80; 4]);
    let made = session.stream(&request.clone().on_logits(ban)).unwrap().finish().unwrap();
    assert_eq!(made.token_ids(), [80; 4]);
    let error = session.generate(&request.on_logits(|_, _| ControlFlow::Break(()))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::State);
}

#[test]
fn log_messages_reach_their_closure_which_is_dropped_with_the_engine() {
    let messages = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&messages);
    let log =
        move |level: LogLevel, text: &str| kept.lock().unwrap().push((level, text.to_owned()));
    let engine = EngineOptions::new().threads(1).log(LogLevel::Debug, log).create().unwrap();
    drop(Session::new(&open(&engine, "llama-q8_0")).unwrap());
    drop(engine);
    let messages = Arc::try_unwrap(messages).expect("the closure is gone").into_inner().unwrap();
    assert!(!messages.is_empty());
}
