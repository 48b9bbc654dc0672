//! Tokens, templates, embeddings, saved sessions: results against what others computed.
use crate::support::{engine, open, path_of, Golden};
use optima::{
    Chat, EngineOptions, ErrorKind, Finish, Metadata, ModelOptions, Output, Path, Request, Session,
    SessionOptions,
};
use std::io::Cursor;

#[test]
fn greedy_ids_are_those_of_transformers() {
    for name in ["llama-q8_0", "gemma3-f32"] {
        let (engine, golden) = (engine(), Golden::of(name));
        let model = open(&engine, name);
        let prompt = golden.text("prompt");
        assert_eq!(model.tokenize(&prompt).unwrap(), golden.ids("prompt_ids"), "{name}");
        let session = Session::new(&model).unwrap();
        let made = session.generate(&Request::new(&prompt).max_tokens(24)).unwrap();
        assert_eq!(made.token_ids(), golden.ids("continuation_ids"), "{name}");
        assert_eq!(made.prompt_ids(), golden.ids("prompt_ids"), "{name}");
        assert_eq!(made.finish(), Finish::Length);
        assert_eq!(made.bytes(), model.detokenize(made.token_ids()).unwrap());
        assert_eq!(made.counters().output_tokens, 24);
        assert_eq!(made.logprobs().len(), 24);
    }
}

#[test]
fn guesses_do_not_change_the_output() {
    let (engine, golden) = (engine(), Golden::of("llama-q8_0"));
    let model = open(&engine, "llama-q8_0");
    let request = Request::new(golden.text("prompt")).max_tokens(24).draft_tokens(4);
    // A model that guesses for itself guesses well.
    let options = SessionOptions::new().draft_model(&model);
    let session = options.create(&model).unwrap();
    let made = session.generate(&request).unwrap();
    assert_eq!(made.token_ids(), golden.ids("continuation_ids"));
    let counters = made.counters();
    assert!(counters.draft_tokens_accepted > 0, "{counters:?}");
}

/// The golden rows of a model: one row of logits for each position of prompt and continuation.
fn golden_row(name: &str, position: usize, vocabulary: usize) -> Vec<f32> {
    let bytes = std::fs::read(path_of(&format!("{name}.logits"))).unwrap();
    let row = &bytes[position * vocabulary * 4..(position + 1) * vocabulary * 4];
    row.chunks(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect()
}

#[test]
fn logits_on_the_reference_path_are_those_of_transformers() {
    let (engine, golden) = (engine(), Golden::of("llama-f32"));
    let model = open(&engine, "llama-f32");
    let session = SessionOptions::new().path(Path::Reference).create(&model).unwrap();
    let last = golden.ids("prompt_ids").len() - 1;
    let request = Request::new(golden.text("prompt"))
        .max_tokens(1)
        .logits_positions(&[1, last as i64])
        .logprobs(3);
    let vocabulary = model.info().unwrap().vocabulary as usize;
    for made in [session.generate(&request), session.stream(&request).unwrap().finish()] {
        let made = made.unwrap();
        assert_eq!(made.logits().len(), 2 * vocabulary);
        for (row, position) in made.logits().chunks(vocabulary).zip([1, last]) {
            let wanted = golden_row("llama-f32", position, vocabulary);
            let worst = row.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst < 2e-3, "position {position}: {worst}");
        }
        assert_eq!(made.top_logprobs(0).len(), 3);
        assert_eq!(made.top_logprobs(0)[0].token, made.token_ids()[0]);
        session.reset().unwrap();
    }
}

#[test]
fn a_chat_is_rendered_by_the_file_s_template() {
    let engine = engine();
    let model = open(&engine, "llama-q8_0");
    let chat =
        Chat::new().system("Be \"brief\".").user("Gr\u{fc}n?\n").assistant("Yes").user("So?");
    let text = model.render(&chat).unwrap();
    assert_eq!(
        text,
        "<|im_start|>system\nBe \"brief\".<|im_end|>\n<|im_start|>user\nGrün?\n<|im_end|>\n\
         <|im_start|>assistant\nYes<|im_end|>\n<|im_start|>user\nSo?<|im_end|>\n\
         <|im_start|>assistant\n"
    );
    let session = Session::new(&model).unwrap();
    let made = session.generate(&model.chat(&chat).unwrap().max_tokens(2)).unwrap();
    assert_eq!(made.prompt_ids()[0], model.token_id("<|im_start|>").unwrap());
    let error = model.render(&chat.template("{% if %}")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Argument);
}

#[test]
fn a_fork_and_a_restored_session_go_on_as_the_first_one() {
    let (engine, golden) = (engine(), Golden::of("llama-q8_0"));
    let model = open(&engine, "llama-q8_0");
    let session = Session::new(&model).unwrap();
    let ids = golden.ids("continuation_ids");
    session.generate(&Request::new(golden.text("prompt")).max_tokens(10)).unwrap();
    let fork = session.fork().unwrap();
    let mut saved = Vec::new();
    session.save_to(&mut saved).unwrap();
    let from_reader = SessionOptions::new().restore_from(&model, Cursor::new(&saved)).unwrap();
    let file = std::env::temp_dir().join(format!("optima_rust_{}.session", std::process::id()));
    session.save(&file).unwrap();
    let from_file = SessionOptions::new().restore(&model, &file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let more = Request::new("").append().no_add_special().max_tokens(14);
    for session in [&session, &fork, &from_reader, &from_file] {
        assert_eq!(session.generate(&more).unwrap().token_ids(), &ids[10..]);
    }
    assert_eq!(session.tokens().unwrap(), fork.tokens().unwrap());
    session.truncate(3).unwrap();
    assert_eq!(session.tokens().unwrap(), golden.ids("prompt_ids")[..3]);
    assert_eq!(session.kv().unwrap().tokens, 3);
    let restored = |saved: &[u8]| SessionOptions::new().restore_from(&model, Cursor::new(saved));
    let error = restored(&saved[..saved.len() / 2]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    *saved.last_mut().unwrap() ^= 1;
    let error = restored(&saved).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Format, "{error}");
}

#[test]
fn embeddings_are_the_same_alone_and_together() {
    let engine = engine();
    let model = open(&engine, "llama-q8_0");
    let session = SessionOptions::new().output(Output::Embedding).create(&model).unwrap();
    let how = Request::default().embedding(optima::Pooling::Mean, optima::Normalise::L2);
    let texts = ["a garden", "the sea – and a river"];
    let together = session.embed_texts(&texts, &how).unwrap();
    assert_eq!(together.len(), 2);
    for (text, wanted) in texts.iter().zip(&together) {
        let request = Request::new(text).embedding(optima::Pooling::Mean, optima::Normalise::L2);
        let alone = session.embed(&request).unwrap();
        assert_eq!(alone.len(), model.info().unwrap().embedding_width as usize);
        let dot: f32 = alone.iter().zip(wanted).map(|(a, b)| a * b).sum();
        assert!((dot - 1.0).abs() < 1e-3, "{dot}");
    }
    assert_ne!(together[0], together[1]);
    let error = session.generate(&Request::new("a")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::State);
}

#[test]
fn models_open_from_memory_and_tell_what_they_are() {
    let engine = EngineOptions::new().threads(1).memory_limit_bytes(1 << 28).create().unwrap();
    let data = std::fs::read(path_of("llama-q8_0.gguf")).unwrap();
    let session = {
        let model = ModelOptions::new().open_bytes(&engine, data).unwrap();
        assert_eq!(model.architecture(), "llama");
        let find = |key| model.metadata(key).unwrap();
        assert_eq!(find("llama.block_count"), Some(Metadata::Integer(3)));
        assert_eq!(find("tokenizer.ggml.model"), Some(Metadata::Text("gpt2".into())));
        assert_eq!(find("no.such.key"), None);
        match find("tokenizer.ggml.tokens") {
            Some(Metadata::List(list)) => {
                assert_eq!(list.len(), 297);
                assert_eq!(list[1], Metadata::Text("<|im_start|>".into()));
            }
            other => panic!("{other:?}"),
        }
        Session::new(&model).unwrap()
    };
    let golden = Golden::of("llama-q8_0");
    let made = session.generate(&Request::new(golden.text("prompt")).max_tokens(24)).unwrap();
    assert_eq!(made.token_ids(), golden.ids("continuation_ids"));
    assert_eq!(engine.memory().unwrap().limit_bytes, 1 << 28);
    assert_eq!(engine.metrics().unwrap().requests_finished, 1);
    assert!(engine.metrics_text("tiny").unwrap().contains("engine=\"tiny\""));
}
