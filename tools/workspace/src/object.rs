//! The core and its C interface as one object, compiled with overflow checks and optimised as one
//! piece.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::{self, Workspace};
use crate::programs;
use anyhow::{Context, Result, bail};

/// The functions that the compiler itself may call.
pub const ALLOWED: [&str; 5] = ["memcpy", "memmove", "memset", "memcmp", "bcmp"];

/// Builds the object, and checks that it needs nothing but the functions that copy and compare
/// memory: otherwise some code in it can panic.
pub fn panic_free(workspace: &Workspace) -> Result<PathBuf> {
    let object = build(workspace, "proof")?;
    let listed = programs::output(Command::new("nm").arg("--undefined-only").arg(&object))?;
    let undefined = listed.lines().filter_map(|line| line.split_whitespace().next_back());
    let forbidden: Vec<&str> = undefined.filter(|name| !ALLOWED.contains(name)).collect();
    if forbidden.is_empty() { Ok(object) } else { bail!("{} refers to {}", object.display(), forbidden.join(", ")) }
}

/// Builds the static library of `hoistway-capi` with a feature and returns the object that holds
/// our code.
pub fn build(workspace: &Workspace, feature: &str) -> Result<PathBuf> {
    let Workspace { root, target_directory } = workspace;
    let package = ["rustc", "--quiet", "--package", "hoistway-capi", "--crate-type", "staticlib"];
    let mut command = cargo::command_in(root);
    command.args(package).args(["--profile", "proof", "--features", feature]);
    // An incremental build is not optimised as one piece.
    command.arg("--target-dir").arg(target_directory).env("CARGO_INCREMENTAL", "0");
    programs::run(&mut command)?;
    let library = target_directory.join("proof/libhoistway_capi.a");
    extract(&library, &library.with_file_name(format!("{feature}-object")))
}

/// Takes our object out of the library, whose other members are the compiler's own run time.
fn extract(library: &Path, directory: &Path) -> Result<PathBuf> {
    let members = programs::output(Command::new("ar").arg("t").arg(library))?;
    let ours: Vec<&str> = members.lines().filter(|member| member.starts_with("hoistway_capi-")).collect();
    let [member] = ours.as_slice() else {
        bail!("{}: one member of ours was expected, not {ours:?}", library.display())
    };
    if directory.exists() {
        fs::remove_dir_all(directory).with_context(|| format!("cannot empty {}", directory.display()))?;
    }
    fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let library = fs::canonicalize(library).with_context(|| format!("cannot find {}", library.display()))?;
    programs::run(Command::new("ar").arg("x").arg(library).arg(member).current_dir(directory))?;
    Ok(directory.join(member))
}
