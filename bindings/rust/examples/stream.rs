//! Text as it is made, by the model's chat template: stream MODEL [QUESTION]
use optima::{Chat, Engine, Model, Request, Session};
use std::error::Error;
use std::io::{stdout, Write};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: stream MODEL [QUESTION]")?;
    let question = args.next().unwrap_or_else(|| "Why is the sky blue?".into());
    let engine = Engine::new()?;
    let model = Model::open(&engine, path)?;
    let session = Session::new(&model)?;
    let request = if model.chat_template().is_empty() {
        Request::new(&question)
    } else {
        model.chat(&Chat::new().user(&question))?
    };
    let mut stream = session.stream(&request.max_tokens(128))?;
    for event in &mut stream {
        print!("{}", event?.text()); // Whole characters, whatever the tokens are.
        stdout().flush()?;
    }
    let made = stream.finish()?;
    let counters = made.counters();
    println!(
        "\n[{:?} after {} tokens, first one after {:.0} ms]",
        made.finish(),
        counters.output_tokens,
        counters.first_token_ns as f64 * 1e-6
    );
    Ok(())
}
