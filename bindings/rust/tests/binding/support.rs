use optima::{Engine, EngineOptions, Model, Request, Session};
use std::path::PathBuf;

/// An output that ends by itself never: the context drops its older half when it is full.
pub fn endless(prompt: &str) -> Request {
    Request::new(prompt).ignore_eos().context_shift(4)
}

pub fn engine() -> Engine {
    EngineOptions::new().threads(1).create().expect("an engine")
}

pub fn path_of(model: &str) -> PathBuf {
    let folder = std::env::var_os("OPTIMA_TEST_MODELS").expect("OPTIMA_TEST_MODELS is set");
    PathBuf::from(folder).join(model)
}

pub fn open(engine: &Engine, name: &str) -> Model {
    Model::open(engine, path_of(&format!("{name}.gguf"))).expect("a tiny model")
}

pub fn session() -> Session {
    Session::new(&open(&engine(), "llama-q8_0")).expect("a session")
}

/// What transformers computed with a tiny model: `<name>.json` beside it.
pub struct Golden {
    json: String,
}

impl Golden {
    pub fn of(name: &str) -> Golden {
        let json = std::fs::read_to_string(path_of(&format!("{name}.json"))).expect("a golden");
        Golden { json }
    }

    fn after(&self, key: &str) -> &str {
        let key = format!("\"{key}\": ");
        let start = self.json.find(&key).expect("the key") + key.len();
        &self.json[start..]
    }

    pub fn ids(&self, key: &str) -> Vec<i32> {
        let list = self.after(key).strip_prefix('[').expect("a list");
        let list = &list[..list.find(']').expect("its end")];
        list.split(',').map(|id| id.trim().parse().expect("an id")).collect()
    }

    pub fn text(&self, key: &str) -> String {
        let mut rest = self.after(key).strip_prefix('"').expect("a string").chars();
        let mut out = String::new();
        loop {
            match rest.next().expect("its end") {
                '"' => return out,
                '\\' => out.push(escaped(&mut rest)),
                c => out.push(c),
            }
        }
    }
}

fn escaped(rest: &mut std::str::Chars<'_>) -> char {
    match rest.next().expect("what is escaped") {
        'n' => '\n',
        'u' => {
            let digits: String = rest.take(4).collect();
            let code = u32::from_str_radix(&digits, 16).expect("hexadecimal");
            char::from_u32(code).expect("no surrogates in the goldens")
        }
        other => other,
    }
}
