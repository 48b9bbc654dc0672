//! Who lives how long, and on which threads.
use crate::support::{endless, engine, open, session, Golden};
use optima::{
    CancelToken, Chat, Engine, EngineOptions, Error, Event, EventKind, Generation, Model,
    ModelOptions, OwnedEvent, Request, Session, SessionOptions, Stream, Verdict,
};

#[test]
fn types_are_send_and_sync_as_the_thread_tags_say() {
    fn shared<T: Send + Sync>() {}
    shared::<Engine>();
    shared::<Model>();
    shared::<Session>();
    shared::<Stream>();
    shared::<Request>();
    shared::<Generation>();
    shared::<CancelToken>();
    shared::<Error>();
    shared::<Event>();
    shared::<OwnedEvent>();
    shared::<Chat>();
    shared::<(EngineOptions, ModelOptions, SessionOptions)>();
}

/// All orders of four things.
fn orders() -> Vec<[usize; 4]> {
    let mut out = Vec::new();
    for code in 0..256 {
        let order = [code / 64, code / 16 % 4, code / 4 % 4, code % 4];
        if (0..4).all(|thing| order.contains(&thing)) {
            out.push(order);
        }
    }
    out
}

#[test]
fn engine_model_session_and_stream_are_dropped_in_any_order() {
    assert_eq!(orders().len(), 24);
    for order in orders() {
        let engine = engine();
        let model = open(&engine, "llama-q8_0");
        let session = Session::new(&model).unwrap();
        let mut stream = session.stream(&endless("a")).unwrap();
        let event = stream.next().unwrap().unwrap();
        let (mut engine, mut model) = (Some(engine), Some(model));
        let (mut session, mut stream) = (Some(session), Some(stream));
        for thing in order {
            match thing {
                0 => drop(engine.take()),
                1 => drop(model.take()),
                2 => drop(session.take()),
                _ => drop(stream.take()),
            }
            if let Some(stream) = &mut stream {
                assert!(stream.next().unwrap().is_ok(), "{order:?}");
            }
        }
        assert!(event.kind() == EventKind::Prefill || event.token().is_some());
    }
}

#[test]
fn results_and_errors_outlive_their_engine() {
    let golden = Golden::of("llama-q8_0");
    let (made, error) = {
        let session = session();
        let request = Request::new(golden.text("prompt")).max_tokens(24);
        let cancel = session.generate_with(&request, |event| match event.token() {
            Some(_) => Verdict::Cancel,
            None => Verdict::Continue,
        });
        (session.generate(&request).unwrap(), cancel.unwrap_err())
    };
    assert_eq!(made.token_ids(), golden.ids("continuation_ids"));
    assert_eq!(error.partial().unwrap().token_ids().len(), 1);
}

#[test]
fn two_engines_compute_at_once() {
    let (a, b) = (engine(), engine());
    let (model_a, model_b) = (open(&a, "llama-q8_0"), open(&b, "gemma3-f32"));
    let (session_a, session_b) = (Session::new(&model_a).unwrap(), Session::new(&model_b).unwrap());
    let (golden_a, golden_b) = (Golden::of("llama-q8_0"), Golden::of("gemma3-f32"));
    let request_a = Request::new(golden_a.text("prompt")).max_tokens(24);
    let request_b = Request::new(golden_b.text("prompt")).max_tokens(24);
    let mut inner = None;
    // One inside the other: a closure of one engine may call into another.
    let outer = session_a.generate_with(&request_a, |event| {
        if event.kind() == EventKind::Token && inner.is_none() {
            inner = Some(session_b.stream(&request_b).unwrap().finish().unwrap());
        }
        Verdict::Continue
    });
    assert_eq!(outer.unwrap().token_ids(), golden_a.ids("continuation_ids"));
    assert_eq!(inner.unwrap().token_ids(), golden_b.ids("continuation_ids"));
    drop(a);
    let made = session_b.generate(&request_b).unwrap();
    assert_eq!(made.token_ids(), golden_b.ids("continuation_ids"));
}

#[test]
fn one_session_is_shared_by_threads() {
    let session = session();
    let request = Request::new("a").max_tokens(4);
    let done: usize = std::thread::scope(|scope| {
        let run = || {
            let (session, request) = (&session, &request);
            scope.spawn(move || match session.generate(request) {
                Ok(made) => made.token_ids().len() / 4,
                Err(error) => {
                    assert_eq!(error.kind(), optima::ErrorKind::Busy);
                    0
                }
            })
        };
        let threads: Vec<_> = (0..8).map(|_| run()).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(done >= 1);
}
