//! The commands in the comments at the heads of the examples. Those of the pages run in the test of
//! console blocks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Folder, is_installed};

/// The longest time until a server or a mount of an example is ready.
const PATIENCE: Duration = Duration::from_secs(30);

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").canonicalize().expect("the examples")
}

/// The files of a directory of examples with this ending, sorted.
fn files(directory: &str, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(examples().join(directory)).expect("a directory of examples");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == ending));
    files.sort();
    files
}

/// The commands in the comment at the head of a file: its lines that are indented by three blanks.
fn commands(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("an example");
    let head = text.lines().take_while(|line| line.starts_with(['#', ';']));
    let indented = head.filter_map(|line| line.strip_prefix(['#', ';'])?.strip_prefix("   "));
    // A comment after a command is not part of it.
    indented.map(|line| line.split("   #").next().unwrap_or(line).trim().to_owned()).collect()
}

/// A scratch directory in which `examples` leads to the examples.
fn scratch() -> Folder {
    let folder = Folder::new();
    std::os::unix::fs::symlink(examples(), folder.path("examples")).expect("a link");
    folder
}

fn shell(folder: &Folder, command: &str) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_hoistway")).parent().expect("a directory").display().to_string();
    let mut shell = Command::new("bash");
    shell.args(["-c", command]).current_dir(folder.path("")).env_remove("RUST_LOG");
    shell.env("PATH", format!("{program}:{}", std::env::var("PATH").unwrap_or_default()));
    shell
}

#[track_caller]
fn succeeded(what: &str, output: &Output) -> String {
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{what}: {}{printed}", String::from_utf8_lossy(&output.stderr));
    printed
}

#[test]
fn every_job_file_runs_as_its_head_or_a_page_says() {
    let pages: String = [files("", "md"), files("../docs", "md")]
        .concat()
        .iter()
        .map(|page| fs::read_to_string(page).expect("a page"))
        .collect();
    for job in [files("", "fio"), files("advise", "fio"), files("two-readers", "fio")].concat() {
        let name = format!("examples/{}", job.strip_prefix(examples()).expect("an example").display());
        let commands = commands(&job);
        let is_on_a_page = pages.lines().any(|line| line.starts_with("$ ") && line.contains(&name));
        assert!(is_on_a_page || !commands.is_empty(), "neither the head of {name} nor a page has a command");
        let folder = scratch();
        for command in commands {
            assert!(command.contains(&name), "{name}: `{command}`");
            let printed = succeeded(&command, &shell(&folder, &command).output().expect("bash"));
            assert!(printed.lines().count() > 3, "{command}: {printed}");
        }
    }
}

/// Copies a configuration with its paths below the scratch directory, so that its commands touch
/// nothing else. Returns the commands with those paths.
fn moved(folder: &Folder, config: &Path) -> Vec<String> {
    let top = folder.name("");
    let top = top.trim_end_matches('/');
    let move_paths = |text: &str| {
        // The first is that of the scratch directory itself.
        ["/tmp/", "/run/", "/srv/", "/dev/sdb"].iter().fold(text.to_owned(), |text, path| {
            ["\"", ":", "=", " "]
                .iter()
                .fold(text, |text, before| text.replace(&format!("{before}{path}"), &format!("{before}{top}{path}")))
        })
    };
    for directory in ["run", "srv", "tmp", "dev"] {
        fs::create_dir_all(folder.path(directory)).expect("a directory");
    }
    // The port of the metrics may be in use.
    let text =
        move_paths(&fs::read_to_string(config).expect("a configuration")).replace("127.0.0.1:9465", "127.0.0.1:0");
    folder.file(&config.file_name().expect("a name").to_string_lossy(), text);
    // A command with an ellipsis is a sketch.
    commands(config).iter().filter(|command| !command.contains(" ... ")).map(|command| move_paths(command)).collect()
}

fn sparse(folder: &Folder, name: &str, bytes: u64) {
    fs::File::create(folder.path(name)).expect("a file").set_len(bytes).expect("a sparse file");
}

#[test]
fn every_configuration_of_the_server_serves_as_its_head_says() {
    if !is_installed("nbdinfo") || !is_installed("nbdcopy") {
        return;
    }
    for config in files("serve", "toml") {
        let folder = scratch();
        let mut commands = moved(&folder, &config);
        sparse(&folder, "srv/database.img", 64 << 20);
        sparse(&folder, "dev/sdb", 600 << 30);
        let is_server = |command: &String| command.starts_with("hoistway serve");
        let at = commands.iter().position(is_server).unwrap_or_else(|| panic!("{}: no command", config.display()));
        let clients = commands.split_off(at + 1);
        let mut server = commands.pop().expect("the server");
        let before = commands.join(" && ");
        if !server.contains(" --run ") {
            // The server ends when its clients have ended.
            let clients = if clients.is_empty() { "true".to_owned() } else { clients.join(" && ") };
            fs::write(folder.path("clients.sh"), clients).expect("a file");
            server.push_str(" --run 'bash clients.sh'");
        }
        let command = if before.is_empty() { server } else { format!("{before} && {server}") };
        let printed = succeeded(&command, &shell(&folder, &command).output().expect("bash"));
        if config.ends_with("slow-disk.toml") {
            assert_eq!(printed.trim(), (8u64 << 30).to_string(), "{command}");
        }
        if config.ends_with("backup-beside-database.toml") {
            let copied = fs::metadata(folder.path("backup.img")).expect("the copy").len();
            assert_eq!(copied, 64 << 20, "{command}");
        }
    }
}

/// A command in the background, ended on drop.
struct Background(Child);

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn every_configuration_of_the_mount_mounts_as_its_head_says() {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
        eprintln!("SKIPPED: mounting needs root and /dev/fuse");
        return;
    }
    for config in files("mount", "toml") {
        let folder = scratch();
        let commands = moved(&folder, &config);
        let [command] = commands.as_slice() else { panic!("{}: {commands:?}", config.display()) };
        let words: Vec<&str> = command.split(' ').collect();
        let (source, target) = (words[2], folder.name("mnt"));
        let command = [&words[..3], &[target.as_str()], &words[4..]].concat().join(" ");
        fs::create_dir_all(source).expect("a directory");
        fs::create_dir(&target).expect("a directory");
        fs::write(Path::new(source).join("film"), "frames").expect("a file");
        let child = shell(&folder, &format!("exec {command}")).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut mount = Background(child.expect("bash"));
        let end = Instant::now() + PATIENCE;
        let seen = Path::new(&target).join("film");
        while !seen.exists() && Instant::now() < end && mount.0.try_wait().expect("a child").is_none() {
            std::thread::sleep(Duration::from_millis(20));
        }
        let read = fs::read_to_string(&seen);
        let written = fs::write(Path::new(&target).join("new"), "data");
        let unmounted = Command::new("umount").arg(&target).status().expect("umount starts");
        assert!(read.is_ok_and(|text| text == "frames") && written.is_ok(), "{command}");
        assert!(unmounted.success() && mount.0.wait().expect("a child").success(), "{command}");
        assert_eq!(fs::read_to_string(Path::new(source).join("new")).expect("the file"), "data");
    }
}
