//! Runs the built binary and checks its output and files.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The longest time to wait for a state, generous for a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Repeats a call until it succeeds, and returns the last error after [`PATIENCE`].
pub fn eventually<T, E>(mut call: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    let end = Instant::now() + PATIENCE;
    loop {
        match call() {
            Err(_) if Instant::now() < end => std::thread::sleep(Duration::from_millis(50)),
            result => return result,
        }
    }
}

/// A short job.
pub const TINY_JOB: &str = "[global]\nrw=read\nbs=4k\nsize=256k\n\n[tiny]\nnumjobs=2\n";

/// The command of the binary with these arguments.
pub fn hoistway(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoistway"));
    command.args(args).env_remove("NO_COLOR");
    command
}

/// The path of an example of this crate.
#[track_caller]
pub fn example(name: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_hoistway")).with_file_name("examples").join(name);
    assert!(program.exists(), "{} is missing: cargo build --workspace --examples", program.display());
    program
}

/// Result of a run.
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Runs the binary to its end.
pub fn run(args: &[&str]) -> Ran {
    Ran::of(hoistway(args).output().expect("the binary starts"))
}

impl Ran {
    pub fn of(output: Output) -> Ran {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Panics unless the run ended with `code`, printed nothing on standard output, and printed all
    /// `parts` on standard error.
    #[track_caller]
    pub fn refused(&self, code: i32, parts: &[&str]) {
        assert_eq!((self.code, self.out.as_str()), (Some(code), ""), "{}", self.err);
        for part in parts {
            assert!(self.err.contains(part), "`{part}` is missing in: {}", self.err);
        }
        assert!(!self.err.contains("panicked"), "{}", self.err);
    }

    /// The JSON document that a successful run printed.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        assert_eq!(self.code, Some(0), "{}", self.err);
        serde_json::from_str(&self.out).expect("standard output is one JSON document")
    }
}

/// A temporary folder of a test.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The path of a file as an argument.
    pub fn name(&self, name: &str) -> String {
        self.path(name).to_str().expect("UTF-8").to_owned()
    }

    /// Writes a file and returns its path.
    pub fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), contents).expect("the file can be written");
        self.name(name)
    }

    /// The names of all files in the folder.
    pub fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("the folder is there");
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect()
    }
}

/// Path of a file of the repository's test data.
pub fn decisions(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/decisions").join(name)
}

/// Returns true if a program is on the path; otherwise prints what is skipped for it.
pub fn is_installed(program: &str) -> bool {
    let found = is_on_path(program);
    if !found {
        eprintln!("SKIPPED: {program} is not installed");
    }
    found
}

/// Returns true if a program is on the path.
pub fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}
