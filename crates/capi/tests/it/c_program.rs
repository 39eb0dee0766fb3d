//! A C program with the header and the static library that the proof of panic freedom checks.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The expected output of the program; the test explains it.
const EXPECTED: &str = "\
noop is found 1, init 0, too small -2
no sectors -5
unknown flag -1
unknown context -4
null -1 -1 -1
unknown elevator -7 -7
submit 0 what 0
submit 0 what 0
submit 0 what 1
1 500+16 at 0 ms
 tokens 10 12; again -4
1 100+8 at 5 ms
 tokens 11; again -4
groups -8 0 0, one too many -3
move 0, set weights 0, cpu 0
remove -9 -9
empty 0 0, twice -4
switch 0, done 1
slice_idle 4 of 8
out of range -8
set 0 found 1 unknown -7
4 events, the last of kind 44; dropped more: 1
cfq-v3 is found 1, init 0, too small -2
submit 0 what 0
submit 0 what 0
submit 0 what 0
1 1000+8 at 0 ms
 tokens 20; again -4
1 1100+8 at 5 ms
 tokens 22; again -4
2 2000+8 at 18 ms
 tokens 21; again -4
exit 0, twice -4
cfq-bw is found 1, init 0, too small -2
reserve 0, from cfq-v3 -6
no capacity -11, headroom 2577199
bad rate -1, stale -4, null -1
submit 0 what 0
submit 0 what 0
3 200+8 at 0 ms
 tokens 31; again -4
4 100+8 at 5 ms
 tokens 30; again -4
release 0, stale -4
";

/// noop keeps the order of arrival, and bio 508 is merged to the end of 500, which was still
/// queued. CFQ serves both requests of process 1 (0 to 5 and 5 to 10 ms), keeps the disk idle for
/// its next one until 18 ms (slice_idle 8), and then turns to process 2. A reservation of 5 MB/s in
/// requests of 128 KiB costs a disk of 60 MB/s and 12 ms 0.54 of its time, and the strokes back
/// 0.03: of 0.85 that leaves 2.58 MB/s. A request within a reservation precedes earlier best-effort
/// requests.
#[test]
fn a_c_program_runs_requests_through_noop_and_cfq() {
    if let Some(printed) = run("c_program.c") {
        assert_eq!(printed, EXPECTED);
    }
}

/// Compiles a C program with the header and the library, runs it and returns its output; `None`
/// without a C compiler.
pub fn run(source: &str) -> Option<String> {
    if Command::new("cc").arg("--version").output().is_err() {
        eprintln!("SKIPPED: there is no C compiler (cc) on this machine");
        return None;
    }
    let library = build_library();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = directory.path().join("c_program");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let compiled = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"])
        .arg(here.join("include"))
        .arg(here.join("tests/it").join(source))
        .arg(&library)
        .arg("-o")
        .arg(&program)
        .output()
        .expect("cc runs");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let ran = Command::new(&program).output().expect("the program runs");
    assert!(ran.status.success(), "{}: {}", source, ran.status);
    Some(String::from_utf8_lossy(&ran.stdout).into_owned())
}

/// Builds the static library with the profile and features of the proof. A library with code that
/// can panic does not link.
fn build_library() -> PathBuf {
    let profile = std::env::current_exe().expect("this test has a path");
    // target/PROFILE/deps/TEST
    let target = profile.ancestors().nth(3).expect("the path of a test is target/PROFILE/deps/TEST").to_owned();
    let built = Command::new(env!("CARGO"))
        .args(["rustc", "--quiet", "--package", "hoistway-capi", "--profile", "proof", "--features", "proof"])
        .args(["--crate-type", "staticlib", "--target-dir"])
        .arg(&target)
        // An incremental build is not optimised as one piece: calls of the panic handler remain.
        .env("CARGO_INCREMENTAL", "0")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    target.join("proof/libhoistway_capi.a")
}
