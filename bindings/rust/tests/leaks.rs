//! What a thousand of everything leaves behind. Alone in its process, whose threads and
//! descriptors it counts, and without libtest's threads.
use optima::{CancelToken, EngineOptions, Model, Request, Session, Verdict};

fn entries(folder: &str) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

extern "C" {
    // Both are glibc's.
    fn malloc_trim(pad: usize) -> i32;
    fn mallopt(parameter: i32, value: i32) -> i32;
}

const M_ARENA_MAX: i32 = -8;

/// Resident memory in KiB, less what is free in the heap.
fn resident() -> i64 {
    // SAFETY: gives free pages back to the system, touches nothing of ours.
    unsafe { malloc_trim(0) };
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn round(path: &str, number: usize) {
    let engine = EngineOptions::new().threads(1).log(optima::LogLevel::Debug, |_, _| ()).create();
    let engine = engine.unwrap();
    let model = Model::open(&engine, path).unwrap();
    let session = Session::new(&model).unwrap();
    let token = CancelToken::new(&engine).unwrap();
    let request = Request::new("a garden").max_tokens(3).cancel(&token);
    match number % 4 {
        0 => drop(session.generate(&request).unwrap()),
        1 => drop(session.generate_with(&request, |_| Verdict::Stop).unwrap()),
        2 => {
            let mut stream = session.stream(&request).unwrap();
            stream.next().unwrap().unwrap(); // The others are dropped unread.
        }
        _ => drop(session.stream(&request).unwrap().finish().unwrap()),
    }
    assert!(session.generate(&Request::from_ids(&[80; 300])).is_err());
}

fn main() {
    // SAFETY: before any other thread allocates. With one heap for all threads, what is free in it
    // is not counted as held.
    unsafe { mallopt(M_ARENA_MAX, 1) };
    let folder = std::env::var("OPTIMA_TEST_MODELS").expect("OPTIMA_TEST_MODELS is set");
    let path = format!("{folder}/llama-q8_0.gguf");
    for number in 0..100 {
        round(&path, number);
    }
    let before = (entries("/proc/self/fd"), entries("/proc/self/task"));
    let memory = resident();
    for number in 0..1000 {
        round(&path, number);
    }
    assert_eq!((entries("/proc/self/fd"), entries("/proc/self/task")), before);
    let grown = resident() - memory;
    assert!(grown < 512, "{grown} KiB more after 1000 rounds");
    println!("1000 rounds: {grown} KiB more, {before:?} descriptors and threads");
}
