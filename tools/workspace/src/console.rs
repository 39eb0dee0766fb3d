//! The console blocks of a document: their commands and expected output.
//!
//! A fenced block whose language is `console` is a session: lines that begin with `$ ` or `# ` are
//! commands, `> ` continues one, and the other lines are the expected output of the command above.
//! A line `...` stands for any lines, ` ...` at the end of a line for the rest of the line. Words
//! after the language name the requirements of a block:
//!
//! - `needs=fio,cpio`: programs.
//! - `root`: root's rights; `loop`: a free loop device.
//! - `no-run`: the block is never run.
//! - `varies`: the output is not compared, because it depends on the machine.
//! - `in=NAME`: the block runs in a system of its own (`cargo xtask check-dist`).
//!
//! A comment `<!-- file: NAME -->` on the line above another fenced block names a file, to which
//! the block is appended before the following session runs.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Printed before each command, with the status of the one above.
const MARK: &str = "\u{1}";

/// A console block.
#[derive(Debug, Default)]
pub struct Block {
    /// The line of its fence, from 1.
    pub line: usize,
    /// The block is never run.
    pub no_run: bool,
    /// The block needs the rights of root.
    pub root: bool,
    /// The block needs a free loop device.
    pub loop_device: bool,
    /// The output depends on the machine.
    pub varies: bool,
    /// The system in which the block runs, if it has one of its own.
    pub system: Option<String>,
    /// Programs that it needs.
    pub needs: Vec<String>,
    /// The commands, in order.
    pub steps: Vec<Step>,
    /// The contents of a file that a block above the session shows: appended before it runs.
    pub files: Vec<(String, String)>,
}

/// A command of a block.
#[derive(Debug)]
pub struct Step {
    /// The command, which may have several lines.
    pub command: String,
    /// The line of the command in the document, from 1.
    pub line: usize,
    /// The expected output.
    pub output: String,
}

impl Block {
    /// The shell script that runs the commands and marks where the output of each begins.
    pub fn script(&self) -> String {
        // The shell ends the background commands of the block.
        let mut script = "exec 2>&1\ntrap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n".to_owned();
        for step in &self.steps {
            script.push_str(&format!("printf '{MARK}'\n{}\nprintf '{MARK}%d{MARK}' $?\n", step.command));
        }
        script
    }

    /// Appends the contents of the block's files to the files below a directory, which are made if
    /// they are missing, with their directories.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn append_files(&self, directory: &Path) -> io::Result<()> {
        for (name, contents) in &self.files {
            let path = directory.join(name);
            fs::create_dir_all(path.parent().unwrap_or(directory))?;
            OpenOptions::new().create(true).append(true).open(path)?.write_all(contents.as_bytes())?;
        }
        Ok(())
    }

    /// Splits the output of the script into the status and the output of each command.
    pub fn results(&self, printed: &str) -> Vec<(i32, String)> {
        let parts: Vec<&str> = printed.split(MARK).collect();
        let of = |index: usize| {
            let output = parts.get(3 * index + 1).copied().unwrap_or_default();
            // A shell that ended early has no status.
            let status = parts.get(3 * index + 2).and_then(|status| status.parse().ok()).unwrap_or(-1);
            (status, output.to_owned())
        };
        (0..self.steps.len()).map(of).collect()
    }
}

/// Returns a message for each command that fails, does not fail as its output announces, or prints
/// another output. A command has to succeed, unless its expected output begins with `error:`.
pub fn failures(document: &str, block: &Block, results: &[(i32, String)]) -> Vec<String> {
    let mut failures = Vec::new();
    for (step, (status, output)) in block.steps.iter().zip(results) {
        let place = format!("{document}:{}: `{}`", step.line, step.command);
        if (*status != 0) != step.output.starts_with("error:") {
            failures.push(format!("{place} exits with {status}:\n{output}"));
        } else if !block.varies && differs(&step.output, output) {
            failures.push(format!("{place} prints\n{output}instead of\n{}", step.output));
        }
    }
    failures
}

/// The kind of the fenced block that a line is in.
enum Fence {
    Session,
    /// The contents of the last file.
    File,
    Other,
}

/// Reads the console blocks of a document.
pub fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut fence = None;
    let mut file = None;
    let mut files: Vec<(String, String)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if let Some(info) = line.strip_prefix("```") {
            fence = match (fence, file.take()) {
                (Some(_), _) => None,
                (None, Some(name)) => {
                    files.push((name, String::new()));
                    Some(Fence::File)
                }
                (None, None) => Some(begin(info, index + 1, &mut files, &mut blocks)),
            };
            continue;
        }
        match &fence {
            None => {
                file = line.strip_prefix("<!-- file: ").and_then(|rest| rest.strip_suffix(" -->")).map(str::to_owned)
            }
            Some(Fence::Other) => {}
            Some(Fence::File) => {
                let (_, contents) = files.last_mut().expect("the file of the block");
                contents.push_str(line);
                contents.push('\n');
            }
            Some(Fence::Session) => take(line, index + 1, blocks.last_mut().expect("the block of the fence")),
        }
    }
    blocks
}

/// Begins a fenced block without a file. Moves `files` to it if it is a session.
fn begin(info: &str, line: usize, files: &mut Vec<(String, String)>, blocks: &mut Vec<Block>) -> Fence {
    let mut words = info.split([' ', ',']).filter(|word| !word.is_empty());
    if words.next() != Some("console") {
        return Fence::Other;
    }
    let mut block = Block { line, files: std::mem::take(files), ..Block::default() };
    let mut in_needs = false;
    for word in words {
        match word {
            "no-run" => block.no_run = true,
            "root" => block.root = true,
            "loop" => block.loop_device = true,
            "varies" => block.varies = true,
            _ => {
                if let Some(system) = word.strip_prefix("in=") {
                    block.system = Some(system.to_owned());
                    continue;
                }
                let first = word.strip_prefix("needs=");
                in_needs |= first.is_some();
                assert!(
                    in_needs,
                    "line {line}: `{word}` is not known; there are needs=, in=, root, loop, no-run and varies"
                );
                block.needs.push(first.unwrap_or(word).to_owned());
            }
        }
    }
    blocks.push(block);
    Fence::Session
}

/// Takes a line of a session.
fn take(line: &str, number: usize, block: &mut Block) {
    if let Some(command) = line.strip_prefix("$ ").or_else(|| line.strip_prefix("# ")) {
        block.steps.push(Step { command: command.to_owned(), line: number, output: String::new() });
        return;
    }
    let Some(step) = block.steps.last_mut() else { return };
    match line.strip_prefix("> ") {
        Some(more) if step.output.is_empty() => {
            step.command.push('\n');
            step.command.push_str(more);
        }
        _ => {
            step.output.push_str(line);
            step.output.push('\n');
        }
    }
}

/// Returns true if an output is not the expected one, in which `...` stands for any lines, or for
/// the rest of a line after text and a blank. No expected output fits any output.
pub fn differs(expected: &str, output: &str) -> bool {
    let expected: Vec<&str> = expected.lines().map(str::trim_end).collect();
    let output: Vec<&str> = output.lines().map(str::trim_end).collect();
    !expected.is_empty() && !fits(&expected, &output)
}

fn fits(expected: &[&str], output: &[&str]) -> bool {
    match expected.split_first() {
        None => output.is_empty(),
        Some((&"...", rest)) => (0..=output.len()).any(|skipped| fits(rest, &output[skipped..])),
        Some((first, rest)) => output.first().is_some_and(|line| line_fits(first, line)) && fits(rest, &output[1..]),
    }
}

fn line_fits(expected: &str, line: &str) -> bool {
    match expected.strip_suffix(" ...") {
        Some(start) => line.starts_with(start),
        None => line == expected,
    }
}
