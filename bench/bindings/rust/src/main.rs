//! What an event costs a host that is written in Rust; the workload is that of ../bench.c.
//!
//!     optima_bench MODEL [ROUNDS]
//!
//! Built from here by `cargo build --release --target-dir ../../../build/cargo`; with the library's
//! folder in LD_LIBRARY_PATH it is `build/cargo/release/optima_bench`.
use optima::{Drive, EngineOptions, Error, Event, EventKind, Model, Request, Session, Verdict};
use std::time::{Duration, Instant};

const TOKENS: usize = 250;
const REQUESTS: usize = 4;
const ROUNDS: usize = 20;

#[derive(Default)]
struct Tally {
    tokens: usize,
    bytes: usize,
}

impl Tally {
    fn count(&mut self, event: &Event) {
        self.tokens += usize::from(event.kind() == EventKind::Token);
        self.bytes += event.text().len();
    }
}

type Way = fn(&Session, &Request, &mut Tally) -> Result<(), Error>;

fn with_callback(session: &Session, request: &Request, tally: &mut Tally) -> Result<(), Error> {
    session.generate_with(request, |event| {
        tally.count(event);
        Verdict::Continue
    })?;
    Ok(())
}

fn with_poll(session: &Session, request: &Request, tally: &mut Tally) -> Result<(), Error> {
    for event in session.stream(request)? {
        let event = event?;
        tally.count(&event);
    }
    Ok(())
}

/// Sorted ns per event of the rounds, and what the last one counted. The first round, which warms
/// up, is not in it.
fn measure(model: &str, drive: Drive, way: Way, rounds: usize) -> Result<(Vec<f64>, Tally), Error> {
    let engine = EngineOptions::new().threads(1).drive(drive).create()?;
    let session = Session::new(&Model::open(&engine, model)?)?;
    let request = Request::new("a").ignore_eos().max_tokens(TOKENS);
    let mut figures = Vec::new();
    let mut tally = Tally::default();
    for round in 0..=rounds {
        tally = Tally::default();
        let mut spent = Duration::ZERO;
        for _ in 0..REQUESTS {
            session.reset()?;
            let begin = Instant::now();
            way(&session, &request, &mut tally)?;
            spent += begin.elapsed();
        }
        assert_eq!(tally.tokens, TOKENS * REQUESTS);
        if round > 0 {
            figures.push(spent.as_nanos() as f64 / tally.tokens as f64);
        }
    }
    figures.sort_by(f64::total_cmp);
    Ok((figures, tally))
}

fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1);
    let model = args.next().unwrap_or_else(|| {
        eprintln!("usage: optima_bench MODEL [ROUNDS]");
        std::process::exit(2)
    });
    let rounds = args.next().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS).max(1);
    let ways: [(&str, Drive, Way); 2] =
        [("callback", Drive::Host, with_callback), ("poll", Drive::Library, with_poll)];
    let mut line = format!("{{\"language\": \"rust\", \"rounds\": {rounds}");
    let mut last = Tally::default();
    for (name, drive, way) in ways {
        let (ns, tally) = measure(&model, drive, way, rounds)?;
        let (least, median) = (ns[0], ns[rounds / 2]);
        line += &format!(", \"{name}_ns_per_event\": {least:.0}");
        line += &format!(", \"{name}_ns_per_event_median\": {median:.0}");
        last = tally;
    }
    println!("{line}, \"tokens\": {}, \"bytes\": {}}}", last.tokens, last.bytes);
    Ok(())
}
