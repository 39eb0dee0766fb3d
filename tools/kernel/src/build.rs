//! Builds the module under test for a kernel.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};
use hoistway_vm::build_root;
use hoistway_vm::fetch::Fetched;
use hoistway_workspace::programs;
use hoistway_workspace::programs::last_lines;
use hoistway_workspace::repository;

/// The name of the module under test.
pub const MODULE: &str = "hoistway_iosched";

/// Returns true if the repository has the module.
pub fn exists() -> bool {
    super::source_directory().join("Makefile").is_file()
}

/// A module that was built.
#[derive(Debug)]
pub struct Built {
    /// The file of the module.
    pub file: PathBuf,
    /// The warnings of the build.
    warnings: Vec<String>,
}

impl Built {
    /// Fails if the build had warnings.
    pub fn require_no_warnings(&self) -> Result<()> {
        if self.warnings.is_empty() {
            return Ok(());
        }
        bail!("the build of {} has warnings:\n{}", self.file.display(), self.warnings.join("\n"))
    }
}

/// Builds the module for a kernel.
pub fn build(fetched: &Fetched, folder: &Path) -> Result<Built> {
    let architecture = fetched.kernel.architecture;
    programs::require_all(&[("make", "make"), ("cc", "gcc"), ("pahole", "pahole"), architecture.compiler()], true)?;
    let name = fetched.kernel.name;
    let release = &fetched.release;
    let image = fetched.image()?;
    let headers = format!("usr/src/linux-headers-{release}");
    // A copy of the sources for each kernel: kbuild writes its files beside them.
    let (directory, output) = match fetched.kernel.archive.build_root_compiler() {
        Some(compiler) => {
            let inside = format!("/build/{name}");
            let directory = build_root::directory(folder).join(inside.trim_start_matches('/'));
            copy_sources(&directory)?;
            fs::copy(&image, directory.join("vmlinuz")).with_context(|| format!("cannot copy {}", image.display()))?;
            let mut make = build_root::command(folder, "make");
            make.arg("-C").arg(&inside).arg(format!("KVER={release}")).arg(format!("KDIR=/{headers}"));
            make.arg(format!("BTF={inside}/vmlinuz")).arg(format!("CC={compiler}"));
            (directory, run(&mut make)?)
        }
        None => {
            let directory = std::path::absolute(folder)?.join("build").join(name);
            copy_sources(&directory)?;
            let mut make = Command::new("make");
            make.arg("-C").arg(&directory).arg(format!("KVER={release}"));
            make.arg(format!("KDIR={}", fetched.root().join(headers).display()));
            make.arg(format!("BTF={}", image.display())).args(architecture.make_variables());
            (directory, run(&mut make)?)
        }
    };
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let log = directory.join("build.log");
    fs::write(&log, text.as_bytes())?;
    if !output.status.success() {
        bail!("the module for {name}: {}; the log is {}:\n{}", output.status, log.display(), last_lines(&text, 20));
    }
    let file = directory.join(format!("{MODULE}.ko"));
    if !file.is_file() {
        bail!("the build for {name} made no {}", file.display());
    }
    Ok(Built { file, warnings: warnings(&text).into_iter().map(str::to_owned).collect() })
}

fn run(command: &mut Command) -> Result<Output> {
    command.output().context("cannot start make")
}

/// Copies the sources of the module into an empty directory.
fn copy_sources(directory: &Path) -> Result<()> {
    let _ = fs::remove_dir_all(directory);
    hoistway_dist::module_sources::copy(repository::root(), directory)
}

/// The lines with warnings of the compiler, objtool and modpost.
fn warnings(log: &str) -> Vec<&str> {
    // Debian's headers have no uncompressed image; the module then has no type information.
    let known = |line: &str| line.contains("the compiler differs from the one used to build the kernel");
    log.lines().filter(|line| line.to_lowercase().contains("warning") && !known(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_of_a_build_are_found_but_for_the_compilers_version() {
        let log = "  CC [M]  x.o\nx.c:1: warning: unused\nwarning: the compiler differs from the one used to build the \
                   kernel\nx.o: warning: objtool: f+0x1: naked return\nWARNING: modpost: missing description\n";
        assert_eq!(warnings(log).len(), 3);
    }

    #[test]
    fn type_information_is_found_in_an_uncompressed_image_for_arm64() {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        // Magic number and version; lengths of the header, the types and the names.
        let mut btf = words(&[0x0001_eb9f, 24, 0, 12, 12, 4]);
        btf.extend_from_slice(b"twelve bytes\0int");
        let mut image = vec![0; 56];
        image.extend_from_slice(b"ARM\x64");
        // The same magic number in front of something else.
        image.extend(words(&[0x0001_eb9f, 0, 1, 2, 3, 4]));
        image.extend_from_slice(&btf);
        image.extend_from_slice(&[0xff; 100]);
        let path = std::env::temp_dir().join(format!("hoistway-image-{}", std::process::id()));
        fs::write(&path, &image).expect("a temporary file");
        let read =
            Command::new("sh").arg(super::super::source_directory().join("kernel-btf")).arg("6.12").arg(&path).output();
        fs::remove_file(&path).expect("it was written");
        let read = read.expect("sh is everywhere");
        assert_eq!(read.stdout, btf, "{}", String::from_utf8_lossy(&read.stderr));
    }
}
