//! Programs that walk through a tree of files, such as tar, and the tree.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::plan::{TreeFiles, Walk};

/// The shell in the initial RAM disk.
const SHELL: &str = "/bin/sh";
/// The bytes of a block of an archive.
const BLOCK: usize = 512;
/// The bytes that are taken from a program at a time.
const CHUNK: usize = 64 << 10;

/// A walk that runs; its results have fio's names.
pub type Running = JoinHandle<Outcome<Vec<u8>>>;

/// Creates the directories and files of a tree.
pub fn create(root: &Path, tree: &TreeFiles) -> Outcome<()> {
    fs::create_dir(root).map_err(|error| format!("{}: {error}", root.display()))?;
    for path in &tree.directories {
        let path = root.join(path);
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    for (path, bytes) in &tree.files {
        let path = root.join(path);
        let contents = vec![b'.'; usize::try_from(*bytes).unwrap_or_default()];
        fs::write(&path, contents).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// Starts a walk below the root of a tree.
pub fn start(root: &Path, walk: &Walk) -> Outcome<Running> {
    let mut command = Command::new(SHELL);
    command.arg("-c").arg(&walk.command).current_dir(root).env("PATH", "/usr/bin:/bin");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let begun = Instant::now();
    let child = command.spawn().map_err(|error| format!("cannot start {SHELL}: {error}"))?;
    let walk = walk.clone();
    Ok(thread::spawn(move || follow(&walk, child, begun)))
}

/// Waits for the end of a walk and returns its results.
pub fn finish(running: Running) -> Outcome<Vec<u8>> {
    running.join().map_err(|_| "the thread of a walk ended".to_owned())?
}

/// Takes the output of a walk until its end or until its time is over.
fn follow(walk: &Walk, mut child: Child, begun: Instant) -> Outcome<Vec<u8>> {
    let most = if walk.seconds > 0 { Duration::from_secs(walk.seconds) } else { Duration::MAX };
    let mut output = child.stdout.take().ok_or("the output of a walk is not piped")?;
    let mut count = Count::new(walk.is_archive);
    let mut buffer = vec![0; CHUNK];
    let mut is_complete = false;
    while begun.elapsed() < most {
        let taken = output.read(&mut buffer).map_err(|error| format!("{}: {error}", walk.command))?;
        if taken == 0 {
            is_complete = true;
            break;
        }
        count.take(buffer.get(..taken).unwrap_or_default());
    }
    let elapsed = begun.elapsed();
    // Programs that still run end at their next write.
    drop(output);
    let ended = child.wait_with_output().map_err(|error| format!("{}: {error}", walk.command))?;
    if is_complete && !ended.status.success() {
        let errors = String::from_utf8_lossy(&ended.stderr).into_owned();
        return Err(format!("{}: {}: {}", walk.command, ended.status, errors.trim()));
    }
    let part = serde_json::json!({
        "total_ios": count.files,
        "io_bytes": count.bytes,
        "runtime": u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
    });
    let results = serde_json::json!({ "jobs": [{ "jobname": walk.section, "read": part }] });
    serde_json::to_vec(&results).map_err(|error| format!("the results of {}: {error}", walk.command))
}

/// The contents of files in the output of a program.
#[derive(Debug, Default)]
struct Count {
    is_archive: bool,
    /// The files; pieces of the output if it is no archive.
    files: u64,
    /// The bytes of the files.
    bytes: u64,
    /// The part of a header that was read.
    header: Vec<u8>,
    /// The bytes of the current file that follow, and those up to the next header.
    contents_left: usize,
    padding_left: usize,
}

impl Count {
    fn new(is_archive: bool) -> Count {
        Count { is_archive, ..Count::default() }
    }

    /// Counts a piece of the output.
    fn take(&mut self, mut piece: &[u8]) {
        if !self.is_archive {
            self.files += 1;
            self.bytes += piece.len() as u64;
            return;
        }
        while !piece.is_empty() {
            let contents = self.contents_left.min(piece.len());
            self.bytes += contents as u64;
            self.contents_left -= contents;
            let padding = self.padding_left.min(piece.len() - contents);
            self.padding_left -= padding;
            let rest = piece.get(contents + padding..).unwrap_or_default();
            let header = (BLOCK - self.header.len()).min(rest.len());
            self.header.extend_from_slice(rest.get(..header).unwrap_or_default());
            piece = rest.get(header..).unwrap_or_default();
            if self.header.len() == BLOCK {
                self.read_header();
                self.header.clear();
            }
        }
    }

    /// Reads a header of the format ustar: the length in octal digits at 124, the kind at 156.
    fn read_header(&mut self) {
        let digits = self.header.get(124..136).unwrap_or_default().iter().filter(|byte| byte.is_ascii_digit());
        let length = digits.fold(0usize, |sum, digit| (sum << 3) | usize::from(digit - b'0'));
        if self.header.get(156) == Some(&b'0') {
            self.files += 1;
            self.contents_left = length;
            self.padding_left = length.next_multiple_of(BLOCK) - length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: u8, length: usize) -> Vec<u8> {
        let mut header = vec![0; BLOCK];
        header[..4].copy_from_slice(b"name");
        header[124..136].copy_from_slice(format!("{length:011o}\0").as_bytes());
        header[156] = kind;
        header
    }

    #[test]
    fn an_archive_is_counted_without_its_headers_in_pieces_of_any_size() {
        let mut archive = header(b'5', 0);
        archive.extend(header(b'0', 700));
        archive.extend(vec![1; 1024]);
        archive.extend(header(b'0', 0));
        archive.extend(header(b'0', 512));
        archive.extend(vec![1; 512]);
        archive.extend(vec![0; 1024]);
        for size in [1, 100, 512, 5000] {
            let mut count = Count::new(true);
            archive.chunks(size).for_each(|piece| count.take(piece));
            assert_eq!((count.files, count.bytes), (3, 1212), "pieces of {size} bytes");
        }
    }

    #[test]
    fn a_tree_is_created_and_a_walk_counts_it() {
        let root = std::env::temp_dir().join(format!("hoistway-walk-{}", std::process::id()));
        let files = vec![("a/x".to_owned(), 700), ("y".to_owned(), 5)];
        create(&root, &TreeFiles { directories: vec!["a".to_owned()], files }).expect("the directory is new");
        let walk = Walk { section: "tree".to_owned(), command: "cat y a/x".to_owned(), ..Walk::default() };
        let results = finish(start(&root, &walk).expect("there is a shell")).expect("cat succeeds");
        let failing = Walk { command: "cat z".to_owned(), ..walk };
        let failure = finish(start(&root, &failing).expect("there is a shell"));
        fs::remove_dir_all(&root).expect("it was made above");
        let document: serde_json::Value = serde_json::from_slice(&results).expect("it is JSON");
        assert_eq!(document["jobs"][0]["read"]["io_bytes"], 705);
        assert!(failure.is_err_and(|error| error.contains("cat z")));
    }
}
