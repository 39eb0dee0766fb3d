//! Names of unknown origin through every command: processes of traces, sections of job files,
//! files, exports, texts of configurations, arguments. None reaches the output or a written file
//! with a control character.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use hoistway_units::printable::is_printable;

use crate::common::{Folder, Ran, hoistway, run};
use crate::fake::Fake;
use crate::serve::client::Client;
use crate::serve::server::{Server, ctl};

/// The name of files and exports, and an argument. It retitles a terminal, begins a line that looks
/// like another message, and has a C1 control sequence, a change of direction, and characters
/// without width.
const NAME: &str = "evil\u{1b}]0;t\u{7}\nFORGED \u{9b}31m\u{202e}\u{200b}\u{feff}";
/// The same in a line of a file that has one line for each name.
const LINE: &str = "evil\u{1b}(0\u{7}\u{9b}31m\u{202e}\u{200b}";
/// The name of an export: configurations refuse control characters in one.
const EXPORT: &str = "evil\u{202e}\u{200b}";
/// The name of a process: 15 bytes.
const PROCESS: &[u8; 15] = b"ev\x1b]\x07\nFORGE\xc2\x9b\xff\x7f";
/// The placeholder of [`PROCESS`] in text from which the recording is made.
const PLACEHOLDER: &[u8; 15] = b"ABCDEFGHIJKLMNO";

/// The runs of each command. `{...}` are files that [`Setting`] creates, `NAME` is the hostile
/// name; `{page}` and `{new}` are written by the run. The pages of `hoistway man` are the list of
/// all commands.
const RUNS: &[(&str, &[&[&str]])] = &[
    (
        "advise",
        &[
            &["advise", "NAME"],
            &["advise", "--drive", "ssd-nvme-tlc", "--job", "{bad job}"],
            &["advise", "--root", "{root}", "sda"],
            &["advise", "--drive", "ssd-nvme-tlc", "--job", "{job}", "--report", "{page}"],
        ],
    ),
    ("arena", &[&["arena", "--drives", "NAME", "-o", "{new}"]]),
    ("bench", &[&["bench", "NAME"]]),
    ("bench-elevators", &[&["bench", "elevators", "--elevators", "NAME"]]),
    ("bench-mount", &[&["bench", "mount", "--elevators", "NAME"]]),
    ("bench-sim", &[&["bench", "sim", "--drive", "NAME"]]),
    ("bench-trace", &[&["bench", "trace", "NAME"]]),
    (
        "compare",
        &[
            &["compare", "{job}"],
            &["compare", "{job}", "--json"],
            &["compare", "{job}", "--report", "{page}"],
            &["compare", "{job}", "--seeds", "2", "--report", "{page}"],
            &["compare", "{bad job}"],
            &["compare", "{job}", "--drive", "{bad drive}"],
        ],
    ),
    ("completions", &[&["completions", "NAME"]]),
    ("conform", &[&["conform", "NAME"], &["conform", "{bad job}"]]),
    ("ctl", &[&["ctl", "--control", "NAME", "get", "server/version"], &["ctl", "help", "NAME"]]),
    ("ctl-get", &[&["ctl", "get", "--control", "NAME", "server/version"]]),
    ("ctl-help", &[&["ctl", "help", "NAME"]]),
    ("ctl-ls", &[&["ctl", "ls", "--control", "NAME"]]),
    ("ctl-set", &[&["ctl", "set", "--control", "NAME", "a", "b"]]),
    (
        "devices",
        &[
            &["devices", "--root", "{root}"],
            &["devices", "--root", "{root}", "sda"],
            &["devices", "--root", "{root}", "--json"],
            &["devices", "NAME"],
        ],
    ),
    ("devices-forget", &[&["devices", "forget", "NAME"]]),
    ("devices-reset", &[&["devices", "reset", "NAME"]]),
    ("devices-set", &[&["devices", "set", "NAME", "scheduler=bfq"], &["devices", "set", "sda", "NAME=1"]]),
    ("drives", &[&["drives", "NAME"], &["drives", "{bad drive}"]]),
    ("elevators", &[&["elevators", "NAME"]]),
    ("ionice", &[&["ionice", "--explain", "{process}"], &["ionice", "-c", "NAME", "true"], &["ionice", "NAME"]]),
    ("man", &[&["man", "{new}"]]),
    ("mount", &[&["mount", "--check-config", "{bad configuration}"], &["mount", "NAME", "NAME"]]),
    (
        "order",
        &[
            &["order", "--explain", "{tree}"],
            &["order", "--explain", "{tree}", "--report", "{page}"],
            &["order", "--json", "{tree}"],
            &["order", "NAME"],
        ],
    ),
    ("reproduce", &[&["reproduce", "NAME"]]),
    ("serve", &[&["serve", "--config", "{bad configuration}"], &["serve", "--export", "a=NAME"]]),
    (
        "sweep",
        &[&["sweep", "{bad configuration}", "-o", "{new}"], &["sweep", "{sweep}", "-o", "{new}", "--report", "{page}"]],
    ),
    ("tar", &[&["tar", "-cvf", "{new}", "{tree}"], &["tar", "-cf", "{new}", "NAME"]]),
    ("top", &[&["top", "--once", "--control", "NAME"]]),
    ("trace", &[&["trace", "NAME"]]),
    (
        "trace-convert",
        &[
            &["trace", "convert", "{trace}", "--as", "blkparse"],
            &["trace", "convert", "{trace}", "--as", "csv"],
            &["trace", "convert", "{trace}", "--as", "perfetto"],
            &["trace", "convert", "{trace}", "--as", "perfetto", "-o", "{page}"],
        ],
    ),
    (
        "trace-cut",
        &[
            &["trace", "cut", "{trace}", "--process", "7"],
            &["trace", "cut", "{trace}", "--process", "NAME"],
            &["trace", "cut", "NAME", "--from", "0"],
        ],
    ),
    (
        "trace-describe",
        &[
            &["trace", "describe", "{trace}"],
            &["trace", "describe", "{trace}", "--json"],
            &["trace", "describe", "{trace}", "--process", "7"],
            &["trace", "describe", "{trace}", "--process", "NAME"],
        ],
    ),
    (
        "trace-info",
        &[&["trace", "info", "{trace}"], &["trace", "info", "{trace}", "--json"], &["trace", "info", "{bad job}"]],
    ),
    ("trace-merge", &[&["trace", "merge", "{trace}", "NAME"], &["trace", "merge", "{trace}", "{trace}"]]),
    ("trace-record", &[&["trace", "record", "NAME", "-o", "{new}"]]),
    (
        "trace-reorder",
        &[&["trace", "reorder", "{trace}", "--by", "sector"], &["trace", "reorder", "NAME", "--by", "sector"]],
    ),
    ("trace-replay", &[&["trace", "replay", "{trace}", "--on", "NAME"]]),
    (
        "trace-view",
        &[
            &["trace", "view", "{trace}", "-o", "{page}"],
            &["trace", "view", "{biosnoop}", "-o", "{page}"],
            &["trace", "view", "NAME"],
        ],
    ),
    (
        "trace-whatif",
        &[
            &["trace", "whatif", "{trace}", "--drive", "ssd-sata-consumer", "--recorded", "noop"],
            &["trace", "whatif", "{trace}", "--drive", "ssd-sata-consumer", "--recorded", "noop", "--report", "{page}"],
            &["trace", "whatif", "{trace}", "--drive", "NAME"],
        ],
    ),
];

/// The files of the runs, with hostile names and contents.
struct Setting {
    folder: Folder,
    root: Fake,
    process: std::process::Child,
    runs: usize,
}

impl Setting {
    fn new() -> Setting {
        let folder = Folder::new();
        let job = format!("[global]\nrw=read\nbs=4k\nsize=64k\n[{LINE}]\n");
        folder.file(&format!("{NAME}.fio"), job);
        folder.file(&format!("bad {NAME}.fio"), format!("[{LINE}]\nsize={LINE}\n{LINE}=1\nrw={LINE}\n"));
        folder.file(&format!("{NAME}.toml"), format!("name = \"{}\"\n{:?} = 1\n", escaped(), "evil\u{9b}"));
        let sweep = "drives = [\"ssd-sata-consumer\"]\nelevators = [\"noop\", \"bfq\"]\nseeds = \"1-2\"\n";
        folder.file(&format!("sweep {NAME}.toml"), format!("jobs = [\"{}.fio\"]\n{sweep}", escaped()));
        std::fs::create_dir(folder.path(NAME)).expect("a directory");
        std::fs::write(folder.path(NAME).join(NAME), "x").expect("a file");
        let trace = recording(&folder);
        folder.file(&format!("{NAME}.blktrace"), trace);
        let line = |at: u32| format!("{at}.000004 {LINE} 1950 sda W {} 4096 0.74\n", 8 * at);
        let titles = "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n".to_owned();
        folder.file(&format!("{NAME}.biosnoop"), titles + &(0..40).map(line).collect::<String>());
        // The name of a process is the name of its program, cut off.
        let program = folder.path(&format!("{NAME}.program"));
        std::fs::copy("/bin/sleep", &program).expect("a program");
        let root = Fake::empty();
        let device = root.device("sda", "/sys/devices/pci0000:00/ata1", "8:0", 1 << 21);
        root.queue(&device, "none [mq-deadline] bfq", true, 64);
        root.file(&format!("{device}/device/model"), format!("{LINE}\n"));
        root.file(&format!("{device}/device/vendor"), format!("{LINE}\n"));
        // Without the streams of the test, which would stay open if the process stayed.
        let mut process = Command::new(program);
        process.arg("60").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Setting { folder, root, process: process.spawn().expect("it starts"), runs: 0 }
    }

    /// The arguments with the paths of the files.
    fn arguments(&mut self, words: &[&str]) -> Vec<String> {
        self.runs += 1;
        let argument = |word: &&str| match *word {
            "{job}" => self.folder.name(&format!("{NAME}.fio")),
            "{bad job}" => self.folder.name(&format!("bad {NAME}.fio")),
            "{bad drive}" | "{bad configuration}" => self.folder.name(&format!("{NAME}.toml")),
            "{sweep}" => self.folder.name(&format!("sweep {NAME}.toml")),
            "{tree}" => self.folder.name(NAME),
            "{trace}" => self.folder.name(&format!("{NAME}.blktrace")),
            "{biosnoop}" => self.folder.name(&format!("{NAME}.biosnoop")),
            "{process}" => self.process.id().to_string(),
            "{root}" => self.root.root().display().to_string(),
            "{new}" => self.folder.name(&format!("{} {NAME}", self.runs)),
            "{page}" => self.folder.name(&format!("{} {NAME}.html", self.runs)),
            word => word.replace("NAME", NAME),
        };
        words.iter().map(argument).collect()
    }

    /// The text of the page of the last run; `None` if it was to write none.
    fn page(&self, words: &[&str]) -> Option<String> {
        let path = self.folder.path(&format!("{} {NAME}.html", self.runs));
        words.contains(&"{page}").then(|| std::fs::read_to_string(path).unwrap_or_else(|error| error.to_string()))
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// [`NAME`] in a string of TOML.
fn escaped() -> String {
    NAME.chars()
        .map(|letter| if is_printable(letter) { letter.to_string() } else { format!("\\u{:04x}", u32::from(letter)) })
        .collect()
}

/// A binary recording whose process has a hostile name.
fn recording(folder: &Folder) -> Vec<u8> {
    let name = String::from_utf8_lossy(PLACEHOLDER);
    let mut text = String::new();
    for number in 0..40_u64 {
        let (sector, us) = (number * 7919 % 100_000 * 8, number * 1000);
        for (step, (offset, action, end)) in
            [(0, 'Q', name.as_ref()), (10, 'G', &name), (20, 'I', &name), (30, 'D', &name), (94, 'C', "0")]
                .into_iter()
                .enumerate()
        {
            let (seconds, step) = ((us + offset) as f64 / 1e6, step as u64);
            text.push_str(&format!(
                "  8,0    0 {:8} {seconds:13.9} {:5}  {action}   R {sector} + 8 [{end}]\n",
                number * 5 + 1 + step,
                7
            ));
        }
    }
    let text = folder.file("trace.txt", text);
    let binary = folder.name("plain.bin");
    let ran = run(&["trace", "convert", &text, "--as", "blktrace", "-o", &binary]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let mut bytes = std::fs::read(&binary).expect("a recording");
    let places: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(PLACEHOLDER)).collect();
    assert!(!places.is_empty(), "the recording has the name of the process");
    for place in places {
        bytes[place..place + PROCESS.len()].copy_from_slice(PROCESS);
    }
    bytes
}

/// Returns what the output would do to a terminal: the character that controls it, or a line that a
/// name began.
fn harm(ran: &Ran) -> Option<String> {
    for text in [&ran.out, &ran.err] {
        if let Some(letter) = unprintable(text) {
            return Some(format!("{letter:?} in {text:?}"));
        }
        if text.lines().any(|line| line.trim_start().starts_with("FOR")) {
            return Some(format!("a name begins a line:\n{text}"));
        }
    }
    ran.err.contains("panicked").then(|| ran.err.clone())
}

fn unprintable(text: &str) -> Option<char> {
    text.chars().find(|letter| !is_printable(*letter) && !matches!(letter, '\n' | '\t'))
}

/// Returns true if the output has the hostile name, escaped.
fn shows_name(ran: &Ran) -> bool {
    [&ran.out, &ran.err].iter().any(|text| has_name(text))
}

fn has_name(text: &str) -> bool {
    ["\\x1b", "\\u001b", "\\u{1b}", "%1B", "\\u{202e}", "\\u202e", "%E2%80%AE"].iter().any(|mark| text.contains(mark))
}

#[test]
fn no_command_passes_a_hostile_name_on() {
    let (mut setting, mut faults) = (Setting::new(), Vec::new());
    for (command, runs) in RUNS {
        let (mut shown, mut seen) = (false, Vec::new());
        for words in *runs {
            let arguments = setting.arguments(words);
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let output = hoistway(&arguments).stdin(Stdio::null()).output().expect("the binary starts");
            let what = words.join(" ");
            for (bytes, stream) in [(&output.stdout, "output"), (&output.stderr, "error")] {
                assert!(std::str::from_utf8(bytes).is_ok(), "{what}: standard {stream} is not UTF-8");
            }
            let ran = Ran::of(output);
            faults.extend(harm(&ran).map(|harm| format!("{what}: {harm}")));
            if let Some(page) = setting.page(words) {
                faults.extend(unprintable(&page).map(|letter| format!("{what}: {letter:?} in the page")));
                if !has_name(&page) {
                    faults.push(format!("{what}: the page does not have the name: {}{}", ran.out, ran.err));
                }
            }
            shown |= shows_name(&ran);
            seen.push(format!("{what}\n{}{}", ran.out, ran.err));
        }
        if !shown {
            faults.push(format!("no run of {command} shows the name, so that it proves nothing: {}", seen.concat()));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[test]
fn every_command_has_a_run_with_a_hostile_name() {
    let folder = Folder::new();
    assert_eq!(run(&["man", &folder.name("pages")]).code, Some(0));
    let pages = std::fs::read_dir(folder.path("pages")).expect("pages");
    let commands: BTreeSet<String> = pages
        .filter_map(|page| {
            page.expect("a page").file_name().to_str()?.strip_prefix("hoistway-")?.strip_suffix(".1").map(str::to_owned)
        })
        .collect();
    let covered: BTreeSet<String> = RUNS.iter().map(|(command, _)| (*command).to_owned()).collect();
    assert_eq!(commands, covered, "add the runs of a new command to RUNS");
}

#[test]
fn a_server_with_hostile_exports_has_harmless_answers_and_logs() {
    let folder = Folder::new();
    let text = format!(
        "[control]\nsocket = \"control\"\n[[device]]\nname = \"sda\"\nbackend = \"mem:64M\"\n\
         [[export]]\nname = \"{EXPORT}\"\ndevice = \"sda\"\ndescription = \"{}\"\n",
        escaped()
    );
    folder.file("server.toml", text);
    let server = Server::start_in(folder, &["--config", "FOLDER/server.toml", "-v"]);
    let mut client = Client::of(&server.socket(), EXPORT);
    client.read(0, 4096).expect("it can be read");
    let mut shown = 0;
    for args in [&["ls", "-r"][..], &["get", "-r"]] {
        let ran = ctl(&server, args);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert_eq!(harm(&ran), None, "{args:?}");
        shown += usize::from(shows_name(&ran));
    }
    assert_eq!(shown, 2);
    let control = server.folder.name("control");
    for args in [&["top", "--once"][..], &["top", "--json"]] {
        let ran = run(&[args, &["--interval", "0.1", "--control", &control]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert_eq!(harm(&ran), None, "{args:?}");
    }
    drop(client);
    let (code, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
    let log = Ran { code, out: String::new(), err: log };
    assert_eq!(harm(&log), None);
    assert!(shows_name(&log), "{}", log.err);
}
