//! The examples as programs, and what they say where the library is missing.
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn model() -> PathBuf {
    let folder = std::env::var_os("OPTIMA_TEST_MODELS").expect("OPTIMA_TEST_MODELS is set");
    Path::new(&folder).join("llama-q8_0.gguf")
}

fn example(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let built = test.parent().unwrap().parent().unwrap().join("examples").join(name);
    let mut command = Command::new(built);
    command.arg(model());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn succeed(output: &Output) -> String {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn examples_run() {
    let hello = succeed(&example("hello").arg("a garden").output().unwrap());
    assert!(hello.starts_with("a garden") && hello.len() > "a garden\n".len(), "{hello}");
    let stream = succeed(&example("stream").arg("a garden").output().unwrap());
    assert!(stream.contains("tokens, first one after"), "{stream}");
    let cancel = succeed(&example("cancel").output().unwrap());
    assert!(cancel.contains("cancelled after"), "{cancel}");
    let sessions = succeed(&example("many_sessions").output().unwrap());
    assert_eq!(sessions.lines().filter(|line| line.contains("visitor")).count(), 16, "{sessions}");
}

#[cfg(not(feature = "link"))]
mod search {
    use super::{example, text};
    use optima::{EngineOptions, ErrorKind, Library, FILE_NAME};

    /// A folder of this process's own.
    fn folder(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("optima_rust_{}_{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn a_missing_library_is_one_line_that_says_what_and_where() {
        let output = example("hello").env_remove("LD_LIBRARY_PATH").output().unwrap();
        assert!(!output.status.success());
        let said = text(&output.stderr);
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains("libsitsoptima.so.1: looked for /"), "{said}");
        assert!(said.contains(&format!("examples/{FILE_NAME}: no such file")), "{said}");
        assert!(said.contains("then by the loader's search"), "{said}");
    }

    #[test]
    fn an_explicit_path_is_the_only_one_looked_at() {
        let path = "/no/such/folder/libsitsoptima.so.1";
        let error = Library::open(path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LibraryMissing);
        let said = error.to_string();
        assert!(said.contains(path) && said.contains("nowhere else"), "{said}");
        let file = std::env::var("OPTIMA_TEST_LIBRARY").expect("OPTIMA_TEST_LIBRARY is set");
        let library = Library::open(file).unwrap();
        assert_eq!(library.version(), optima::raw::OPTIMA_RELEASE);
        assert_ne!(library.features() & optima::raw::OPTIMA_FEATURE_GGUF, 0);
        let engine = EngineOptions::new().library(library).threads(1).create().unwrap();
        assert_eq!(engine.threads(), 1);
    }

    #[test]
    fn a_library_beside_the_program_comes_first_and_a_broken_one_is_told() {
        let file = std::env::var("OPTIMA_TEST_LIBRARY").expect("OPTIMA_TEST_LIBRARY is set");
        let folder = folder("beside");
        let hello = example("hello");
        let copy = folder.join("hello");
        std::fs::copy(hello.get_program(), &copy).unwrap();
        let run = || {
            let mut command = std::process::Command::new(&copy);
            command.args(hello.get_args()).env_remove("LD_LIBRARY_PATH").output().unwrap()
        };
        std::os::unix::fs::symlink(file, folder.join(FILE_NAME)).unwrap();
        super::succeed(&run());
        std::fs::remove_file(folder.join(FILE_NAME)).unwrap();
        std::fs::write(folder.join(FILE_NAME), "not a library").unwrap();
        let output = run();
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains("nowhere else"), "{said}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
