//! Errors of `hoistway serve` before any file is opened: the exit code, and messages with place and
//! remedy.

use crate::common::{Folder, run};

/// Runs the server with invalid arguments; the folder must contain only `kept` afterwards.
#[track_caller]
fn refused(folder: &Folder, args: &[&str], code: i32, parts: &[&str]) {
    let (before, socket) = (folder.files(), folder.name("nbd.sock"));
    let mut all = vec!["serve", "--socket", &socket];
    all.extend(args);
    run(&all).refused(code, parts);
    assert_eq!(folder.files(), before, "nothing is left behind");
}

#[test]
fn errors_of_the_command_line_quote_the_argument() {
    let folder = Folder::new();
    let disk = folder.file("disk.img", "x".repeat(1 << 20));
    let of = |args: &[&str], parts: &[&str]| refused(&folder, args, 2, parts);
    of(&[], &["the command line: nothing is exported: write an [[export]], or --export NAME=PATH"]);
    of(&["--export", "a=/none"], &["--export a=/none: `backend` is \"/none\": No such file or directory"]);
    of(&["--export", &format!("a={disk},size=1G")], &["ends at byte 1048576, the export at 1073741824"]);
    of(
        &["--export", "a=mem:1M,weigth=3"],
        &["there is no key `weigth` in an export (did you mean `weight`?); there are "],
    );
    of(&["--export", "a=mem:1M", "--export", "a=mem:1M"], &["--export a=mem:1M: there is already export `a`"]);
    of(&["--export", "a=mem:1M", "--drive", "sata-7200-2005"], &["did you mean `sata-7200-2006`?"]);
    of(
        &["--export", "a=mem:1M", "--set", "bfq.slice_idle=0"],
        &["--set bfq.slice_idle=0: no device has the elevator bfq"],
    );
    of(&["--export", "a=mem:1M", "--listen", "0.0.0.0"], &["--listen 0.0.0.0: ", "require TLS", "--insecure"]);
    of(
        &["--export", "a=mem:1M", "--listen", "here:1"],
        &["--listen here:1: `address` is \"here:1\": it takes an IP address"],
    );
    of(&["--export", "a=mem:1M,reserve=1M"], &["--calibrate` measures them"]);
    of(
        &["--export", &format!("a={disk},reserve=50M,bandwidth=150M,position=12ms")],
        &[
            "`reserve` of 52428800 bytes/s in requests of 131072 bytes takes 513.4 % of the device `disk.img`, and 82.0 % are left",
        ],
    );
    of(&["--export", "a=mem:1M", "--tls-required"], &["[tls] has no `certificate`", "[tls] has no `key`"]);
    of(&["--export", "a=mem:1M", "--elevator", "dedline"], &["did you mean `deadline`?"]);
    of(&["--export", "a=mem:1M", "--check", "x.fio"], &["cannot be used with"]);
}

#[test]
fn all_errors_of_a_file_are_reported_with_line_and_column() {
    let folder = Folder::new();
    let text = "[[device]]\nname = \"a\"\nbackend = \"mem:1M\"\ndepht = 3\n[[export]]\nname = \"x\"\nsize = \"2M\"\n[[export]]\nname = \"x\"\n";
    let file = folder.file("serve.toml", text);
    let at = |place: &str, said: &str| format!("serve.toml:{place}: {said}");
    refused(
        &folder,
        &["--config", &file],
        2,
        &[
            &at("4:1", "there is no key `depht` in [[device]] (did you mean `depth`?); there are "),
            &at("7:8", "the device `a` ends at byte 1048576, the export at 2097152"),
            &at("9:8", "there is already export `x`: "),
        ],
    );
    refused(
        &folder,
        &["--config", "none.toml"],
        2,
        &["none.toml: cannot read the configuration: No such file or directory"],
    );
}
