//! `hoistway completions`, typed into real shells.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::common::{Folder, run};

/// The longest time until a shell answers.
const PATIENCE: Duration = Duration::from_secs(30);

/// Ctrl-A and Ctrl-E: to the beginning and the end of the line.
const HOME: char = '\u{1}';
const END: char = '\u{5}';

/// An interactive shell on a terminal.
struct Shell {
    child: Child,
    screen: String,
    output: Receiver<Vec<u8>>,
}

impl Shell {
    /// Starts a shell on a terminal of `script`; `None`, aloud, if a program is missing.
    fn start(shell: &str, begin: &str, directory: &Path) -> Option<Shell> {
        let program = shell.split(' ').next().unwrap_or(shell);
        for needed in [program, "script"] {
            if Command::new(needed).arg("--version").output().is_err() {
                eprintln!("SKIPPED: {needed} is not installed");
                return None;
            }
        }
        let bin = Path::new(env!("CARGO_BIN_EXE_hoistway")).parent().expect("a directory").to_owned();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut child = Command::new("script")
            .args(["-qec", shell, "/dev/null"])
            .current_dir(directory)
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("TERM", "vt100")
            .env("HOME", directory)
            .env("COLUMNS", "400")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script starts");
        let mut stdout = child.stdout.take().expect("a pipe");
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = stdout.read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        let mut shell = Shell { child, screen: String::new(), output };
        // Readline folds long lines on a narrow terminal.
        shell.type_keys("stty cols 400\n");
        shell.type_keys(&format!("{begin}\n"));
        shell.type_keys("echo READ\"\"Y\n");
        shell.wait_for("READY\r");
        Some(shell)
    }

    fn type_keys(&mut self, keys: &str) {
        let stdin = self.child.stdin.as_mut().expect("a pipe");
        stdin.write_all(keys.as_bytes()).expect("the shell reads");
        stdin.flush().expect("the shell reads");
    }

    /// Waits until the shell prints a text; returns the screen since the last call.
    fn wait_for(&mut self, text: &str) -> String {
        let end = Instant::now() + PATIENCE;
        while !self.screen.contains(text) {
            let left = end.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.screen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(error) => panic!("`{text}` is not printed ({error}): {}", self.screen),
            }
        }
        std::mem::take(&mut self.screen)
    }

    /// Types a line that ends with tabs; returns the words of the line that the shell made of it.
    #[track_caller]
    fn completed(&mut self, line: &str) -> String {
        self.type_keys(&format!("{line}{HOME}echo 'BEGI''N' {END} 'EN''D'\n"));
        let screen = self.wait_for("END\r");
        let made = screen.split("BEGIN ").nth(1).and_then(|rest| rest.split(" END").next());
        made.unwrap_or_else(|| panic!("no line in {screen}")).trim().to_owned()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Typed lines, and what a shell makes of them.
const LINES: [(&str, &str); 11] = [
    ("hoistway driv\t", "hoistway drives"),
    ("hoistway drives ssd-nvme-tlc-m\t", "hoistway drives ssd-nvme-tlc-mixed"),
    ("hoistway elevators antic\t", "hoistway elevators anticipatory"),
    ("hoistway compare --driv\tcmr-2\t", "hoistway compare --drive cmr-20tb"),
    ("hoistway compare --drive=cmr-2\t", "hoistway compare --drive=cmr-20tb"),
    ("hoistway compare --elevators noop,dead\t", "hoistway compare --elevators noop,deadline"),
    ("hoistway compare --set cfq-v3.slice_i\t", "hoistway compare --set cfq-v3.slice_idle="),
    ("hoistway compare --set cfq-v3.slice_idle=\t", "hoistway compare --set cfq-v3.slice_idle=8"),
    ("hoistway compare --set=cfq-v3.slice_i\t", "hoistway compare --set=cfq-v3.slice_idle="),
    ("hoistway drives --probe mi\t", "hoistway drives --probe mine.toml"),
    ("hoistway compare --kernel 2.6.1\t", "hoistway compare --kernel 2.6.18"),
];

#[test]
fn bash_completes_names_behind_blanks_equals_signs_and_commas() {
    let folder = Folder::new();
    folder.file("mine.toml", "");
    let begin = "PS1='> '; source <(hoistway completions bash)";
    let Some(mut bash) = Shell::start("bash --norc --noprofile -i", begin, &folder.path("")) else { return };
    for (typed, expected) in LINES {
        assert_eq!(bash.completed(typed), expected, "{typed:?}");
    }
    bash.type_keys("hoistway drives ssd-nvme\t\t\t");
    let listed = bash.wait_for("ssd-nvme-tlc-mixed");
    assert!(listed.contains("ssd-nvme-tlc "), "both drives are listed: {listed}");
}

#[test]
fn zsh_completes_names_behind_blanks_equals_signs_and_commas() {
    let folder = Folder::new();
    folder.file("mine.toml", "");
    let begin = "PS1='> '; autoload -Uz compinit; compinit -u -D; source <(hoistway completions zsh)";
    let Some(mut zsh) = Shell::start("zsh -f -i", begin, &folder.path("")) else { return };
    for (typed, expected) in LINES {
        assert_eq!(zsh.completed(typed), expected, "{typed:?}");
    }
}

#[test]
fn fish_lists_names_behind_blanks_equals_signs_and_commas() {
    let folder = Folder::new();
    folder.file("mine.toml", "");
    if Command::new("fish").arg("--version").output().is_err() {
        eprintln!("SKIPPED: fish is not installed");
        return;
    }
    let bin = Path::new(env!("CARGO_BIN_EXE_hoistway")).parent().expect("a directory").to_owned();
    for (typed, expected) in LINES {
        // `complete -C` lists the candidates of the last word. Each line has one tab at its end.
        let line = typed.trim_end_matches('\t').replace("--driv\t", "--drive ");
        let output = Command::new("fish")
            .args(["--no-config", "-c", &format!("hoistway completions fish | source; complete -C '{line}'")])
            .current_dir(folder.path(""))
            .env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default()))
            .env("HOME", folder.path(""))
            .output()
            .expect("fish starts");
        let found = String::from_utf8_lossy(&output.stdout).into_owned();
        let word = expected.split(' ').next_back().expect("a word");
        let candidates: Vec<&str> = found.lines().filter_map(|line| line.split('\t').next()).collect();
        assert!(candidates.contains(&word), "{word} is no candidate of `{line}`: {candidates:?}");
    }
}

#[test]
fn the_script_of_each_shell_calls_the_program() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = run(&["completions", shell]);
        assert!(
            ran.code == Some(0) && ran.out.contains("hoistway") && ran.out.contains("HOISTWAY_COMPLETE"),
            "{shell}"
        );
    }
}
