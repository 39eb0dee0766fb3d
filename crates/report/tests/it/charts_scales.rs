//! The pure functions of the charts under node. Skipped with a message without node.

use std::process::Command;

#[test]
fn scales_ticks_and_formats_pass_their_tests() {
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/scales.test.mjs");
    let Ok(output) = Command::new("node").args(["--test", tests]).output() else {
        return println!("SKIPPED: node is not in PATH, the functions of the charts were not tested");
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
