//! A latch that another thread triggers, and a deadline: cancel MODEL
use optima::{CancelToken, Engine, ErrorKind, Model, Request, Session, Verdict};
use std::error::Error;
use std::thread;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: cancel MODEL")?;
    let engine = Engine::new()?;
    let model = Model::open(&engine, path)?;
    let session = Session::new(&model)?;
    // Would go on for ever: no token ends it, and a full context drops its older half.
    let endless = Request::new("Once upon a time").ignore_eos().context_shift(4);

    let token = CancelToken::new(&engine)?;
    let (mut canceller, other) = (None, token.clone());
    let made = session.generate_with(&endless.clone().cancel(&token), |event| {
        if event.index() == 4 && canceller.is_none() {
            let other = other.clone();
            canceller = Some(thread::spawn(move || other.cancel()));
        }
        Verdict::Continue
    });
    report(made)?;

    report(session.generate(&endless.deadline(Duration::from_millis(200))))
}

/// What was made by then is in the error.
fn report(made: Result<optima::Generation, optima::Error>) -> Result<(), Box<dyn Error>> {
    match made {
        Ok(made) => println!("ended by itself: {}", made.text()),
        Err(error) if matches!(error.kind(), ErrorKind::Cancelled | ErrorKind::Deadline) => {
            let begin: String =
                error.partial().map_or("", |made| made.text()).chars().take(40).collect();
            println!("{error}: {begin:?} ...");
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
