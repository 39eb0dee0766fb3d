//! `hoistway compare` with what users of fio have: its examples and its command line.

use std::fs;

use crate::common::{Folder, Ran, hoistway, run};

/// The variables that examples take from the environment.
const VARIABLES: [(&str, &str); 4] =
    [("FIO_RW", "randread"), ("FIO_BS", "4k"), ("FIO_IODEPTH", "8"), ("FIO_DIR", "/tmp")];
/// Of the 85 examples of fio 3.33, 55 need no other hardware.
const EXAMPLES_MIN: usize = 50;

/// The examples of Debian's package `fio-examples`, or those of `HOISTWAY_FIO_EXAMPLES`.
#[test]
fn examples_of_fio_run_or_are_refused_for_their_engine() {
    let folder = std::env::var("HOISTWAY_FIO_EXAMPLES").unwrap_or_else(|_| "/usr/share/doc/fio/examples".into());
    let Ok(entries) = fs::read_dir(&folder) else {
        eprintln!("SKIPPED: there are no examples of fio in {folder}");
        return;
    };
    let (mut completed, mut wrong) = (0, Vec::new());
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.extension().is_none_or(|extension| extension != "fio") {
            continue;
        }
        let mut command = hoistway(&["compare", "--drive", "cmr-8tb", "--elevators", "none"]);
        command.args(["--runtime", "20ms", "--scale", "0.001"]).arg(&path).envs(VARIABLES);
        let ran = Ran::of(command.output().expect("it starts"));
        let has_table = ran.out.lines().any(|line| line.starts_with("none "));
        match ran.code {
            Some(0) if has_table => completed += 1,
            Some(1) if ran.err.contains("engine `") => {}
            _ => wrong.push(format!("{}: {:?}\n{}", path.display(), ran.code, ran.err)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(completed >= EXAMPLES_MIN, "{completed}");
}

#[test]
fn a_command_line_of_fio_is_compared_like_its_job_file() {
    let common = ["--drive", "cmr-8tb", "--elevators", "none,deadline", "--json"];
    let line =
        ["--", "--name=x", "--rw=randread", "--size=64m", "--direct=1", "--number_ios=50", "--name=y", "--size=1m"];
    let ran = run(&[&["compare"], common.as_slice(), line.as_slice()].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let folder = Folder::new();
    folder.file("x.fio", "[x]\nrw=randread\nsize=64m\ndirect=1\nnumber_ios=50\n[y]\nsize=1m\n");
    let of_file = hoistway(&[&["compare", "x.fio"], common.as_slice()].concat()).current_dir(folder.path("")).output();
    let of_file = Ran::of(of_file.expect("it starts"));
    let figures = |ran: &Ran| ran.json()["elevators"].clone();
    assert!(figures(&ran).as_array().is_some_and(|all| all.len() == 2));
    assert_eq!(figures(&ran), figures(&of_file));
}

#[test]
fn errors_of_a_command_line_of_fio_name_the_option() {
    let ran = run(&["compare", "--", "--name=x", "--size=1m", "--rw=backwards"]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("rw") && ran.err.contains("backwards"), "{}", ran.err);
    let ran = run(&["compare", "--", "--client=host", "--name=x", "--size=1m"]);
    assert!(ran.code != Some(0) && ran.err.contains("client"), "{}", ran.err);
    let ran = run(&["compare", "--", "--name=x", "--size=1m", "--eta=never"]);
    assert!(ran.code == Some(0) && ran.err.contains("eta"), "{}", ran.err);
}

#[test]
fn a_pasted_command_of_fio_has_the_word_one_dash_or_abbreviations() {
    let common = ["compare", "--drive", "cmr-8tb", "--elevators", "none", "--json", "--"];
    let ran = |line: &[&str]| {
        let ran = run(&[common.as_slice(), line].concat());
        assert_eq!(ran.code, Some(0), "{line:?}: {}", ran.err);
        ran.json()
    };
    let two_dashes = ran(&["--name=x", "--rw=read", "--size=1m"]);
    let with_word = ran(&["/usr/bin/fio", "--name=x", "--rw=read", "--size=1m"]);
    assert_eq!(with_word, two_dashes);
    for line in [&["-name=x", "-rw=read", "-size=1m"][..], &["-nam", "x", "-thread", "-rw", "read", "-siz", "1m"]] {
        assert_eq!(ran(line)["elevators"], two_dashes["elevators"], "{line:?}");
    }
}

#[test]
fn an_empty_command_line_of_fio_is_refused() {
    for line in [&["compare", "--"][..], &["compare", "--", "fio"], &["compare", "--json", "--"]] {
        let ran = run(line);
        assert_eq!(ran.code, Some(2), "{line:?}: {}", ran.err);
        assert!(ran.err.contains("nothing follows `--`") && ran.err.contains("--name=x"), "{}", ran.err);
    }
}
