//! Commands whose help or guide promises that they write nothing, under `strace`.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Folder, Ran, hoistway};
use crate::fake;

/// System calls that create, change or remove a file, or open one.
const CALLS: &str = "trace=open,openat,openat2,creat,mkdir,mkdirat,mknod,mknodat,rename,renameat,renameat2,unlink,unlinkat,rmdir,link,linkat,\
                     symlink,symlinkat,truncate,ftruncate,fallocate,chmod,fchmod,fchmodat,chown,fchown,fchownat,lchown,utimensat,setxattr,fsetxattr";

/// Runs a command under `strace` and returns the successful calls that change files; `None`, aloud,
/// without `strace`.
fn changes(folder: &Folder, args: &[&str]) -> Option<(Ran, Vec<String>)> {
    let trace = folder.name("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-o", &trace, "-e", CALLS, env!("CARGO_BIN_EXE_hoistway")]).args(args);
    let Ok(output) = command.current_dir(folder.path("")).output() else {
        assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "strace is not installed");
        eprintln!("SKIPPED: strace is not installed");
        return None;
    };
    let calls = fs::read_to_string(trace).expect("the trace");
    let is_change = |call: &&str| {
        let failed =
            call.contains(" = -1 ") || call.contains("<unfinished") || call.contains("+++") || call.contains("---");
        let opens = call.contains("open");
        let only_reads = opens && !["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"].iter().any(|flag| call.contains(flag));
        !failed && !only_reads && !call.contains("\"/dev/")
    };
    Some((Ran::of(output), calls.lines().filter(is_change).map(str::to_owned).collect()))
}

fn example(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name).display().to_string()
}

#[test]
fn commands_that_promise_to_write_nothing_open_no_file_for_writing() {
    let folder = Folder::new();
    folder.file("a", "data");
    fs::File::create(folder.path("copy.img")).and_then(|file| file.set_len(8 << 30)).expect("a sparse file");
    let machine = fake::server();
    let root = machine.root().display().to_string();
    let job = folder.file("job.fio", "[a]\nrw=randread\nbs=4k\nsize=1m\n");
    let trace = example("two-readers/disk");
    let commands: [&[&str]; 9] = [
        &["advise", "--job", &job, "--drive", "null", "--seeds", "2"],
        &["compare", &job, "--elevators", "noop,bfq"],
        &["trace", "replay", &trace, "--on", "copy.img", "--reads-only", "--timing", "asap"],
        &["trace", "replay", &trace, "--drive", "null", "--timing", "asap"],
        &["trace", "whatif", &trace, "--elevators", "noop"],
        &["order", "."],
        &["order", "--explain", "."],
        &["devices", "set", "sda", "scheduler=bfq", "--dry-run", "--root", &root],
        &["devices", "reset", "sda", "--dry-run", "--root", &root],
    ];
    for args in commands {
        let Some((ran, changes)) = changes(&folder, args) else { return };
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.err);
        assert_eq!(changes, [""; 0], "{args:?}");
    }
    // The check finds a file that is written.
    let Some((ran, found)) = changes(&folder, &["compare", &job, "--elevators", "noop", "--report", "page.html"])
    else {
        return;
    };
    assert!(ran.code == Some(0) && !found.is_empty(), "{found:?}");
}

#[test]
fn helps_name_the_files_that_are_written() {
    let help = |args: &[&str]| {
        let text = Ran::of(hoistway(args).output().expect("it starts")).out;
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let program = help(&["--help"]);
    assert!(!program.contains("Nothing is written"), "serve, mount and tar write: {program}");
    let advise = help(&["advise", "--help"]);
    assert!(advise.contains("The command changes no setting without --apply"), "{advise}");
}
