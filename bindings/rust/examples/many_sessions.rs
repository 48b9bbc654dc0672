//! Sixteen conversations on one model, driven by one loop: many_sessions MODEL
//!
//! All begin with the same instructions, which are computed once. A game or a server would do its
//! own work between two rounds of the loop.
use optima::{Engine, EventKind, Model, Request, Session, Stream};
use std::error::Error;
use std::task::Poll;
use std::time::Duration;

const INSTRUCTIONS: &str =
    "You are the keeper of a small museum. Answer each visitor in one short sentence.\n";

struct Visitor {
    session: Session,
    stream: Option<Stream>,
    text: String,
    turns: usize,
}

impl Visitor {
    fn new(model: &Model, number: usize) -> Result<Visitor, optima::Error> {
        let session = Session::new(model)?;
        let prompt = format!("{INSTRUCTIONS}Visitor: What is in room {number}?\nKeeper:");
        let stream = Some(session.stream(&Request::new(prompt).max_tokens(12))?);
        Ok(Visitor { session, stream, text: String::new(), turns: 1 })
    }

    /// Takes what is there, waiting for one event at most; whether there is more to come.
    fn turn(&mut self) -> Result<bool, optima::Error> {
        let stream = match &mut self.stream {
            None => return Ok(false),
            Some(stream) => stream,
        };
        match stream.poll(Duration::from_millis(1)) {
            Poll::Pending => {}
            Poll::Ready(Some(event)) => {
                let event = event?;
                if event.kind() == EventKind::Token {
                    self.text += event.text();
                }
            }
            Poll::Ready(None) if self.turns == 1 => {
                self.turns = 2;
                let request = Request::new("\nVisitor: And behind it?\nKeeper:").append();
                self.stream = Some(self.session.stream(&request.max_tokens(12))?);
                self.text += " |";
            }
            Poll::Ready(None) => self.stream = None,
        }
        Ok(true)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: many_sessions MODEL")?;
    let engine = Engine::new()?;
    let model = Model::open(&engine, path)?;
    let visitors = (0..16).map(|number| Visitor::new(&model, number));
    let mut visitors = visitors.collect::<Result<Vec<_>, _>>()?;
    let mut running = true;
    while running {
        running = false;
        for visitor in &mut visitors {
            running |= visitor.turn()?;
        }
    }
    for (number, visitor) in visitors.iter().enumerate() {
        println!("visitor {number}: {:?}", visitor.text);
    }
    let metrics = engine.metrics()?;
    println!(
        "{} of {} prompt tokens from the cache",
        metrics.prompt_tokens_cached, metrics.prompt_tokens
    );
    Ok(())
}
