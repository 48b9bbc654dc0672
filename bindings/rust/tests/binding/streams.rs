//! Events: as an iterator, by polling, with text that is split over tokens, cancelled.
use crate::support::{endless, engine, open, session, Golden};
use optima::{
    CancelToken, Drive, EngineOptions, ErrorKind, EventKind, Finish, Grammar, Request, Session,
    SessionOptions, Verdict,
};
use std::os::unix::io::AsRawFd;
use std::sync::mpsc;
use std::task::Poll;
use std::time::Duration;

/// Letters of two, three and four bytes; the tiny vocabularies have a token for each byte.
const SPLIT: &str = "größe – 東京 🙂.";

fn split_request() -> Request {
    Request::new("a").grammar(Grammar::Gbnf(format!("root ::= \"{SPLIT}\"")))
}

#[test]
fn text_split_over_tokens_comes_in_whole_characters() {
    let session = session();
    let (mut text, mut bytes, mut parts) = (String::new(), Vec::new(), 0);
    let mut stream = session.stream(&split_request()).unwrap();
    for event in &mut stream {
        let event = event.unwrap();
        text += event.text();
        bytes.extend_from_slice(event.bytes());
        parts += usize::from(event.kind() == EventKind::Token && event.text().is_empty());
    }
    let made = stream.finish().unwrap();
    assert_eq!((text.as_str(), bytes.as_slice()), (SPLIT, SPLIT.as_bytes()));
    assert_eq!(made.text(), SPLIT);
    assert!(parts >= 5, "{parts} tokens completed no character");
    let mut heard = String::new();
    let again = session.generate_with(&split_request(), |event| {
        heard += event.text();
        Verdict::Continue
    });
    assert_eq!(again.unwrap().token_ids(), made.token_ids());
    assert_eq!(heard, SPLIT);
}

#[test]
fn a_stream_gives_prefill_then_each_token_in_order() {
    let golden = Golden::of("llama-q8_0");
    let session = session();
    let request = Request::new(golden.text("prompt")).max_tokens(24).logprobs(2);
    let mut stream = session.stream(&request).unwrap();
    let (mut ids, mut done) = (Vec::new(), 0);
    while let Some(event) = stream.next() {
        let event = event.unwrap();
        match event.kind() {
            EventKind::Prefill => {
                assert!(ids.is_empty() && event.tokens_done() > done);
                done = event.tokens_done();
                assert_eq!(event.tokens_total(), golden.ids("prompt_ids").len() as i64);
            }
            EventKind::Token => {
                assert_eq!(event.index(), ids.len() as i64);
                assert_eq!(event.top()[0].token, event.token().unwrap());
                assert_eq!(event.top()[0].logprob, event.logprob());
                ids.push(event.token().unwrap());
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(stream.is_finished() && stream.next().is_none());
    assert_eq!(ids, golden.ids("continuation_ids"));
    assert_eq!(done, golden.ids("prompt_ids").len() as i64);
    assert_eq!(stream.finish().unwrap().token_ids(), ids);
}

#[test]
fn streams_of_one_engine_take_their_own_events_on_any_thread() {
    let golden = Golden::of("llama-q8_0");
    let engine = engine();
    let model = open(&engine, "llama-q8_0");
    let request = Request::new(golden.text("prompt")).max_tokens(24);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            let (model, request) = (&model, &request);
            scope.spawn(move || {
                for _ in 0..5 {
                    let session = Session::new(model).unwrap();
                    let made = session.stream(request).unwrap().finish().unwrap();
                    assert_eq!(made.token_ids(), Golden::of("llama-q8_0").ids("continuation_ids"));
                }
            });
        }
    });
    // Two on one thread, taken in the opposite order of their start.
    let (a, b) = (Session::new(&model).unwrap(), Session::new(&model).unwrap());
    let (first, second) = (a.stream(&request).unwrap(), b.stream(&request).unwrap());
    assert_ne!(first.id(), second.id());
    let ids = golden.ids("continuation_ids");
    assert_eq!(second.finish().unwrap().token_ids(), ids);
    assert_eq!(first.finish().unwrap().token_ids(), ids);
}

#[test]
fn a_host_with_its_own_loop_polls() {
    for drive in [Drive::Library, Drive::Host] {
        let engine = EngineOptions::new().threads(1).drive(drive).create().unwrap();
        let session = Session::new(&open(&engine, "llama-q8_0")).unwrap();
        let mut stream = session.stream(&split_request()).unwrap();
        let mut text = String::new();
        loop {
            match stream.poll(Duration::ZERO) {
                Poll::Pending => std::thread::yield_now(),
                Poll::Ready(None) => break,
                Poll::Ready(Some(event)) => text += event.unwrap().text(),
            }
        }
        assert_eq!(text, SPLIT, "{drive:?}");
        let waited = session.stream(&split_request()).unwrap().finish().unwrap();
        assert_eq!(waited.text(), SPLIT, "{drive:?}");
    }
}

#[repr(C)]
struct PollFd {
    fd: i32,
    events: i16,
    returned: i16,
}

extern "C" {
    fn poll(fds: *mut PollFd, count: std::os::raw::c_ulong, timeout_ms: i32) -> i32;
}

#[test]
fn an_event_loop_sleeps_on_the_engine_s_descriptor() {
    const POLLIN: i16 = 1;
    let engine = engine();
    let session = Session::new(&open(&engine, "llama-q8_0")).unwrap();
    let fd = engine.wakeup_fd().unwrap();
    let readable = |timeout_ms| {
        let mut one = PollFd { fd: fd.as_raw_fd(), events: POLLIN, returned: 0 };
        // SAFETY: one live element.
        unsafe { poll(&mut one, 1, timeout_ms) == 1 }
    };
    assert!(!readable(0));
    let mut stream = session.stream(&split_request()).unwrap();
    let mut text = String::new();
    while !stream.is_finished() {
        assert!(readable(-1));
        match stream.poll(Duration::ZERO) {
            Poll::Ready(Some(event)) => text += event.unwrap().text(),
            other => assert!(stream.is_finished(), "readable, and {other:?}"),
        }
    }
    assert_eq!(text, SPLIT);
    assert!(!readable(0));
}

#[test]
fn a_token_cancels_from_another_thread_within_one_step() {
    let engine = engine();
    let session = Session::new(&open(&engine, "llama-q8_0")).unwrap();
    let token = CancelToken::new(&engine).unwrap();
    let mut seen = 0;
    let request = endless("a garden").cancel(&token);
    let made = session.generate_with(&request, |event| {
        seen += usize::from(event.kind() == EventKind::Token);
        if seen == 5 {
            let token = token.clone();
            std::thread::spawn(move || token.cancel()).join().unwrap();
        }
        Verdict::Continue
    });
    let error = made.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!((5..=6).contains(&seen), "{seen} tokens");
    assert_eq!(error.partial().unwrap().token_ids().len(), seen);
    assert_eq!(error.free(), Some(seen as i64));
}

#[test]
fn a_token_cancels_a_prompt_within_one_chunk() {
    // All on one thread: a thread of the library would be ahead of its events.
    let engine = EngineOptions::new().threads(1).drive(Drive::Host).create().unwrap();
    let options = SessionOptions::new().prefill_chunk_tokens(16);
    let session = options.create(&open(&engine, "llama-q8_0")).unwrap();
    let token = CancelToken::new(&engine).unwrap();
    let request = Request::from_ids(&[80; 200]).max_tokens(4).cancel(&token);
    let mut done = 0;
    let made = session.generate_with(&request, |event| {
        done = event.tokens_done().max(done);
        let token = token.clone();
        std::thread::spawn(move || token.cancel()).join().unwrap();
        Verdict::Continue
    });
    assert_eq!(made.unwrap_err().kind(), ErrorKind::Cancelled);
    assert!((16..=32).contains(&done), "{done} of 200 prompt tokens");
}

#[test]
fn a_token_cancels_before_the_start_and_the_session_goes_on_without_it() {
    let engine = engine();
    let session = Session::new(&open(&engine, "llama-q8_0")).unwrap();
    let token = CancelToken::new(&engine).unwrap();
    assert!(!token.is_cancelled());
    token.cancel();
    assert!(token.is_cancelled());
    let request = endless("a").cancel(&token);
    for made in [session.generate(&request), session.stream(&request).unwrap().finish()] {
        let error = made.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        assert!(error.partial().unwrap().token_ids().is_empty());
    }
    assert_eq!(session.generate(&split_request()).unwrap().text(), SPLIT);
}

#[test]
fn a_stream_is_cancelled_from_another_thread() {
    let session = session();
    let mut stream = session.stream(&endless("a")).unwrap();
    while stream.next().unwrap().unwrap().kind() != EventKind::Token {}
    std::thread::scope(|scope| {
        let stream = &stream;
        scope.spawn(move || stream.cancel());
    });
    let mut error = None;
    for event in &mut stream {
        error = event.err();
    }
    assert_eq!(error.unwrap().kind(), ErrorKind::Cancelled);
    assert_eq!(stream.finish().unwrap_err().kind(), ErrorKind::Cancelled);
}

#[test]
fn stop_keeps_and_cancel_rolls_back() {
    let session = session();
    let made = session.generate_with(&endless("a garden"), |event| match event.kind() {
        EventKind::Token if event.index() == 2 => Verdict::Stop,
        _ => Verdict::Continue,
    });
    let made = made.unwrap();
    assert_eq!((made.finish(), made.token_ids().len()), (Finish::Host, 3));
    let before = session.tokens().unwrap();
    let made = session.generate_with(&endless("the sea"), |event| match event.kind() {
        EventKind::Token => Verdict::Cancel,
        _ => Verdict::Continue,
    });
    assert_eq!(made.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(session.tokens().unwrap(), before);
}

#[test]
fn a_stream_moves_to_another_thread() {
    let session = session();
    let stream = session.stream(&split_request()).unwrap();
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        for event in stream {
            send.send(event.unwrap()).unwrap();
        }
    });
    let text: String = receive.iter().map(|event| event.text().to_owned()).collect();
    assert_eq!(text, SPLIT);
}
