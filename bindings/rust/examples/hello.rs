//! A model's answer: hello MODEL [PROMPT]
use optima::{Engine, Error, Model, Request, Session};

fn answer(path: &str, prompt: &str) -> Result<String, Error> {
    let engine = Engine::new()?;
    let model = Model::open(&engine, path)?;
    let session = Session::new(&model)?;
    let made = session.generate(&Request::new(prompt).max_tokens(24))?;
    Ok(made.text().to_owned())
}

fn main() {
    let mut args = std::env::args().skip(1);
    let path = args.next().unwrap_or_else(|| {
        eprintln!("usage: hello MODEL [PROMPT]");
        std::process::exit(2)
    });
    let prompt = args.next().unwrap_or_else(|| "The capital of France is".into());
    match answer(&path, &prompt) {
        Ok(text) => println!("{prompt}{text}"),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1)
        }
    }
}
