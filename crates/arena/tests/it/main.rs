//! The patch that adds switches for the parts of the elevator `paternoster`.

use std::path::Path;
use std::process::Command;

fn run(command: &mut Command) {
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_ablation_patch_applies_to_the_core_and_compiles() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let copy = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(copy.path().join("crates")).expect("a folder");
    run(Command::new("cp").arg("-r").arg(here.join("../core")).arg(copy.path().join("crates")));
    run(Command::new("git").arg("apply").arg(here.join("ablation.patch")).current_dir(copy.path()));
    let options = ["--edition=2024", "--crate-type=lib", "--emit=metadata", "--cfg=feature=\"alloc\"", "-Dwarnings"];
    run(Command::new("rustc").args(options).arg("crates/core/src/lib.rs").current_dir(copy.path()));
}
