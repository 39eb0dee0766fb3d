//! The core as assembly for the kernel module, so that a user needs no Rust to build it:
//! kernel/core-x86_64.S and kernel/core-arm64.S.
//!
//! rustc compiles `hoistway-capi` and the core to a listing each. Of both, what the functions in
//! kernel/exports reach becomes one file (`program`), after the checks of `gates`.

mod gates;
mod listing;
mod machine;
mod program;
mod stack;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use hoistway_workspace::needs::{self, Need};
use hoistway_workspace::{cargo, programs, repository};

use machine::Machine;
use program::Program;

/// The list of the functions that the module calls.
const EXPORTS: &str = "kernel/exports";

/// Options of the assembly.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Options {
    /// Fail if the files in kernel/ are not those that this rustc writes; another rustc skips that
    #[arg(long)]
    check: bool,
}

/// A file of assembly and how it is compiled.
struct Output {
    machine: Machine,
    target: &'static str,
    path: &'static str,
    flags: &'static str,
}

/// Flags for all architectures: no unwinding, no tables of jumps (they are indirect), no table of
/// offsets, names from which paths can be read.
const FLAGS: &str = "-C relocation-model=static -C force-unwind-tables=no -C jump-tables=no -C relro-level=off \
                     -C symbol-mangling-version=v0 -C embed-bitcode=no --emit=asm";

const OUTPUTS: [Output; 2] = [
    Output {
        machine: Machine::X86_64,
        target: needs::ASSEMBLY_TARGETS[0],
        path: "kernel/core-x86_64.S",
        flags: "-C code-model=kernel -C no-redzone=y -C force-frame-pointers=yes",
    },
    // The kernel walks frame pointers, and x18 may hold its shadow call stack.
    Output {
        machine: Machine::Arm64,
        target: needs::ASSEMBLY_TARGETS[1],
        path: "kernel/core-arm64.S",
        flags: "-C code-model=small -C force-frame-pointers=yes -C target-feature=+reserve-x18",
    },
];

/// Writes or checks the files of all architectures.
pub fn run(options: &Options) -> Result<()> {
    let exports = exports()?;
    let compiler = programs::output(Command::new("rustc").arg("--version").current_dir(repository::root()))?;
    for output in &OUTPUTS {
        let program = Program::new(output.machine, listings(output)?, &exports)?;
        let paths = gates::check(&program).with_context(|| output.path)?;
        report(output, &program, &paths);
        let text = program.text(&head(output.machine, compiler.trim()))?;
        let path = repository::root().join(output.path);
        if options.check {
            let present = fs::read_to_string(&path).with_context(|| output.path)?;
            compare(output.path, &present, &text)?;
        } else {
            fs::write(&path, &text).with_context(|| output.path)?;
            println!("{}: {} bytes", output.path, text.len());
        }
    }
    Ok(())
}

/// Reads the list of exported functions, and checks that it has those that the module calls.
fn exports() -> Result<BTreeSet<String>> {
    let root = repository::root();
    let exports = program::read_exports(&fs::read_to_string(root.join(EXPORTS)).context(EXPORTS)?)?;
    let header = fs::read_to_string(root.join("crates/capi/include/hoistway.h"))?;
    let mut declared: BTreeSet<&str> = called(&header).collect();
    declared.retain(|name| !exports.contains(*name));
    for entry in fs::read_dir(root.join("kernel")).context("kernel")? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "c") {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            if let Some(name) = called(&text).find(|name| declared.contains(name)) {
                bail!("{} calls {name}, which {EXPORTS} does not list", path.display());
            }
        }
    }
    Ok(exports)
}

/// The functions of the core's interface that a C text declares or calls.
fn called(text: &str) -> impl Iterator<Item = &str> {
    machine::words(text)
        .filter(|(at, name)| name.starts_with("hoistway_") && text[at + name.len()..].starts_with('('))
        .map(|(_, name)| name)
}

/// Compiles the crates and reads their listings.
fn listings(output: &Output) -> Result<Vec<Vec<listing::Item>>> {
    needs::provide(&[Need::Target(output.target)], true)?;
    let target_directory = cargo::target_directory()?.join("kernel-asm");
    let directory = target_directory.join(output.target).join("kernel/deps");
    remove_listings(&directory)?;
    let options =
        ["rustc", "--quiet", "--package", "hoistway-capi", "--profile", "kernel", "--features", "proof,fixed"];
    programs::run(
        cargo::command()
            .env("RUSTFLAGS", format!("{} {FLAGS}", output.flags))
            .env("CARGO_INCREMENTAL", "0")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .args(options)
            .args(["--target", output.target, "--crate-type", "staticlib", "--target-dir"])
            .arg(&target_directory),
    )?;
    let files = listing_files(&directory)?;
    if files.len() != 2 {
        bail!("{}: listings of hoistway-core and hoistway-capi were expected, not {files:?}", directory.display());
    }
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        listing::read(&path.display().to_string(), &text, output.machine.comment())
    };
    files.iter().map(read).collect()
}

fn listing_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "s") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Removes what an earlier compilation left, so that cargo compiles both crates again.
fn remove_listings(directory: &Path) -> Result<()> {
    let profile = directory.parent().context("a directory of dependencies has a parent")?;
    if profile.exists() {
        fs::remove_dir_all(profile).with_context(|| profile.display().to_string())?;
    }
    Ok(())
}

fn head(machine: Machine, compiler: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let returns = match machine {
        Machine::X86_64 => {
            "
/* Kernels without return thunks do not export theirs. */
#if defined(__KERNEL__) && !defined(CONFIG_RETHUNK) && !defined(CONFIG_MITIGATION_RETHUNK)
#define HOISTWAY_RETURN ret; int3
#else
#define HOISTWAY_RETURN jmp __x86_return_thunk
#endif
"
        }
        Machine::Arm64 => "",
    };
    format!(
        "/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The elevators of hoistway-core {version} behind the interface hoistway.h, compiled from Rust.
 * `cargo xtask kernel asm` writes this file. Do not change it by hand.
 * Compiler: {compiler}
 */
{returns}"
    )
}

/// Compares a file with the generated text. A file by another compiler is not compared.
fn compare(path: &str, present: &str, generated: &str) -> Result<()> {
    let compiler = |text: &str| text.lines().find_map(|line| line.strip_prefix(" * Compiler: ").map(str::to_owned));
    let (theirs, ours) = (compiler(present), compiler(generated));
    let Some(theirs) = theirs else { bail!("{path} does not name its compiler; run `cargo xtask kernel asm`") };
    if Some(&theirs) != ours.as_ref() {
        println!("SKIPPED: {path} is by {theirs}, and this is {}", ours.unwrap_or_default());
        return Ok(());
    }
    if present == generated {
        println!("{path} is current");
        return Ok(());
    }
    let mut lines = present.lines().zip(generated.lines()).enumerate();
    let line = lines.find(|(_, (present, generated))| present != generated).map_or(0, |(number, _)| number + 1);
    bail!("{path}:{line}: differs from what the sources of the core give; run `cargo xtask kernel asm`")
}

/// Prints the sizes of a program and the stack that each exported function takes.
fn report(output: &Output, program: &Program, paths: &BTreeMap<String, stack::Path>) {
    let functions = program.functions().count();
    println!("{}: {functions} functions, {} constants", output.path, program.items.len() - functions);
    let mut rows: Vec<_> = paths.iter().collect();
    rows.sort_by_key(|(name, path)| (-path.bytes, *name));
    for (name, path) in rows {
        let last = path.functions.last().map_or("", |(name, _)| name);
        println!("  {:>5} bytes of stack: {name}, deepest in {last}", path.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_differs_is_an_error_unless_another_compiler_wrote_it() {
        let text = |compiler: &str, code: &str| format!("{}{code}\n", head(Machine::X86_64, compiler));
        let present = text("rustc 1.95.0", "nop");
        assert!(compare("a.S", &present, &present).is_ok());
        let error = compare("a.S", &present, &text("rustc 1.95.0", "ud2")).expect_err("differs").to_string();
        assert!(error.starts_with("a.S:14: differs"), "{error}");
        assert!(compare("a.S", &present, &text("rustc 1.96.0", "ud2")).is_ok());
        assert!(compare("a.S", "nop\n", &present).is_err());
    }

    #[test]
    fn calls_in_c_are_found() {
        let text = "struct hoistway_bio bio; hoistway_next(q); x = hoistway_submit(q, &bio);";
        assert_eq!(called(text).collect::<Vec<_>>(), ["hoistway_next", "hoistway_submit"]);
    }
}
