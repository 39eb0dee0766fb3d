//! The console blocks of the READMEs, also those of published packages, and of the guides, run in
//! order in a scratch directory.
//!
//! `tools/workspace/src/console.rs` describes the blocks. One is skipped, aloud, if the machine
//! lacks a program, a loop device or root that it needs, and if it is marked `no-run` or `in=NAME`.
//!
//! Blocks of a document share the directory, in which `examples`, `testdata`, `crates` and `tools`
//! lead to those of the repository. Each block has a shell of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use hoistway_workspace::console::{Block, blocks};

use crate::common::is_on_path;

/// The documents whose blocks run, beside the guides in these directories. Pages of benchmarks are
/// records of measurements, not guides: their commands take hours.
const DOCUMENTS: &[&str] = &["README.md", "packaging/README.md", "python/README.md"];
const DIRECTORIES: &[&str] = &["docs", "docs/elevators", "examples", "examples/slow-disk", "examples/tar-reorder"];

/// The directories of packages, each of which has a README.
const PACKAGES: &[&str] = &["crates"];

/// All documents whose blocks run, as paths from the root of the repository.
fn documents() -> Vec<String> {
    let mut documents: Vec<String> = DOCUMENTS.iter().map(|name| (*name).to_owned()).collect();
    for directory in DIRECTORIES {
        let entries = std::fs::read_dir(repository().join(directory)).expect("a directory of documents");
        let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        documents.extend(
            names
                .filter(|name| name.ends_with(".md") && !name.ends_with("-benchmarks.md"))
                .map(|name| format!("{directory}/{name}")),
        );
    }
    for directory in PACKAGES {
        let packages = std::fs::read_dir(repository().join(directory)).expect("a directory of packages");
        let names = packages.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        let readmes = names.map(|name| format!("{directory}/{name}/README.md"));
        documents.extend(readmes.filter(|readme| repository().join(readme).is_file()));
    }
    documents.sort();
    documents
}

/// The longest duration of a block, in seconds. The command that exceeds it fails with status -1.
const BLOCK_SECONDS: &str = "600";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// Returns why a block cannot run here, None if it can.
fn obstacle(block: &Block) -> Option<String> {
    let missing: Vec<&str> = block.needs.iter().map(String::as_str).filter(|program| !is_on_path(program)).collect();
    match () {
        () if block.no_run => Some("marked no-run".to_owned()),
        () if block.system.is_some() => Some("cargo xtask check-dist runs it in a system of its own".to_owned()),
        () if block.root && !rustix::process::geteuid().is_root() => Some("needs root".to_owned()),
        () if block.loop_device && !has_loop_device() => Some("no free loop device".to_owned()),
        () if !missing.is_empty() => Some(format!("{} not installed", missing.join(", "))),
        () => None,
    }
}

/// Returns true if a file can become a loop device; losetup may have made the node that it names.
fn has_loop_device() -> bool {
    let image = tempfile::NamedTempFile::new().expect("a file");
    image.as_file().set_len(1 << 20).expect("a length");
    let attached = Command::new("losetup").args(["--find", "--show"]).arg(image.path()).output();
    let device = attached.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let Some(device) = device.and_then(|name| String::from_utf8(name).ok()) else { return false };
    Command::new("losetup").args(["--detach", device.trim()]).status().is_ok_and(|status| status.success())
}

/// Runs the blocks of a document. Returns a message for each command that fails or whose output
/// differs.
fn failures(name: &str, text: &str) -> Vec<String> {
    let directory = tempfile::tempdir().expect("a scratch directory");
    for shared in ["examples", "testdata", "crates", "tools"] {
        std::os::unix::fs::symlink(repository().join(shared), directory.path().join(shared)).expect("a link");
    }
    let mut failures = Vec::new();
    for block in blocks(text) {
        block.append_files(directory.path()).expect("the files of a block are written");
        if let Some(obstacle) = obstacle(&block) {
            eprintln!("SKIPPED: {name}:{}: {obstacle}", block.line);
            continue;
        }
        let found = hoistway_workspace::console::failures(name, &block, &run(&block, directory.path()));
        if !found.is_empty() {
            failures.extend(found);
            failures.extend(logs(directory.path()));
        }
    }
    failures
}

/// The last lines of the logs that the commands of a document wrote.
fn logs(directory: &Path) -> Vec<String> {
    const LINES: usize = 20;
    let entries = std::fs::read_dir(directory).expect("the scratch directory").flatten();
    let logs = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "log"));
    logs.map(|path| {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        format!("{}:\n{}", path.display(), lines[lines.len().saturating_sub(LINES)..].join("\n"))
    })
    .collect()
}

/// Runs a block in a shell. Returns the exit status and the output of each command.
fn run(block: &Block, directory: &Path) -> Vec<(i32, String)> {
    let program = Path::new(env!("CARGO_BIN_EXE_hoistway")).parent().expect("a directory");
    let mut paths = vec![program.to_owned()];
    paths.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    // The examples have the program of the guide about custom elevators; they come last, because
    // others have the names of programs of the system.
    paths.push(program.join("examples"));
    let output = Command::new("timeout")
        .args(["--kill-after=5", BLOCK_SECONDS, "bash", "-c", &block.script()])
        .current_dir(directory)
        .env("PATH", std::env::join_paths(paths).expect("a path"))
        .env("NO_COLOR", "1")
        .output()
        .expect("timeout starts");
    let results = block.results(&String::from_utf8_lossy(&output.stdout)).into_iter();
    results.map(|(status, output)| (status, without_remaining_time(&output))).collect()
}

/// The output without the note on the rest of a long comparison, which comes on a slow machine
/// alone.
fn without_remaining_time(output: &str) -> String {
    let is_note = |line: &str| line.starts_with("note: ") && line.contains(" are left: --runtime ");
    output.split_inclusive('\n').filter(|line| !is_note(line)).collect()
}

#[test]
fn the_console_blocks_of_the_documents_run_as_they_are_written() {
    // `HOISTWAY_DOCUMENT` selects the documents whose path contains it.
    let selected = std::env::var("HOISTWAY_DOCUMENT").unwrap_or_default();
    let mut all = Vec::new();
    for name in documents().iter().filter(|name| name.contains(&selected)) {
        let text = std::fs::read_to_string(repository().join(name)).expect("a document");
        all.extend(failures(name, &text));
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn commands_in_the_readmes_of_packages_are_console_blocks() {
    let documents = documents();
    let readmes = documents.iter().filter(|name| name.starts_with("crates/") || name.starts_with("python/"));
    let mut count = 0;
    for name in readmes {
        count += 1;
        let text = std::fs::read_to_string(repository().join(name)).expect("a document");
        let mut is_inside = false;
        for line in text.lines() {
            if let Some(info) = line.strip_prefix("```") {
                is_inside = !is_inside;
                let is_unmarked = is_inside && (info.is_empty() || ["sh", "bash", "shell"].contains(&info));
                assert!(!is_unmarked, "{name}: a block without a language, or of a shell: use `console`");
            }
            let is_code = !is_inside && line.starts_with("    ");
            assert!(!is_code, "{name}: an indented block: use a fence with a language: {line}");
        }
    }
    assert!(count > 25, "{count} READMEs");
}

#[test]
fn a_session_can_use_the_files_of_the_blocks_above_it() {
    let document = "<!-- file: a.toml -->\n```toml\none = 1\n```\nText.\n<!-- file: a.toml -->\n```toml\ntwo = 2\n```\n```console\n$ cat a.toml\none = 1\ntwo = 2\n```\n";
    assert_eq!(failures("a.md", document), [""; 0]);
}

#[test]
fn a_session_runs_in_order_in_one_directory() {
    let document = "```console\n$ echo one > file\n```\nText.\n```console\n$ cat file\none\n$ printf '%s\\n' a b c\na\n...\nc\n```\n";
    assert_eq!(failures("a.md", document), [""; 0]);
}

#[test]
fn a_session_can_use_the_program_and_the_examples() {
    let document = "```console\n$ hoistway --version | cut -d' ' -f1\nhoistway\n$ ls examples/competing-readers.fio\nexamples/competing-readers.fio\n```\n";
    assert_eq!(failures("a.md", document), [""; 0]);
}

#[test]
fn another_output_and_a_failing_command_are_found() {
    let document = "```console\n$ echo one\ntwo\n$ false\n$ for word in a b; do\n>   echo $word\n> done\na\nb\n```\n";
    let found = failures("a.md", document);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("a.md:2: `echo one` prints\none\n"), "{found:?}");
    assert!(found[1].starts_with("a.md:4: `false` exits with 1"), "{found:?}");
}

#[test]
fn an_expected_error_is_compared() {
    let document = "```console\n$ echo 'error: no'; false\nerror: no\n```\n";
    assert_eq!(failures("a.md", document), [""; 0]);
}

#[test]
fn blocks_that_cannot_run_are_skipped() {
    let document =
        "```console no-run\n$ false\n```\n```console needs=no-such-program\n$ false\n```\n```sh\nfalse\n```\n";
    assert_eq!(failures("a.md", document), [""; 0]);
    assert_eq!(failures("a.md", "```console varies\n$ echo $$\n17\n```\n"), [""; 0]);
}
