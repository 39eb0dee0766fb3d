//! The sources of the kernel module: the files of `kernel/` that a build needs, and the header of
//! the library.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// The library's header, which the module includes.
const HEADER: &str = "crates/capi/include/hoistway.h";

/// The architectures, each with its core.
const CORES: [(&str, &str); 2] = [("x86_64", "core-x86_64.S"), ("aarch64", "core-arm64.S")];

/// The endings and names of the files in `kernel/` that a build needs.
const SOURCES: [&str; 9] = [".c", ".h", ".S", "Kbuild", "Makefile", "VERSION", "dkms.conf", "kernel-btf", "LICENSE"];

/// Copies the sources of a repository into a directory, which is made if it does not exist.
pub fn copy(root: &Path, to: &Path) -> Result<()> {
    let from = root.join("kernel");
    for (machine, core) in CORES {
        if !from.join(core).is_file() {
            bail!("kernel/{core}, the core for {machine}, is missing: `cargo xtask kernel asm` writes it");
        }
    }
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    let mut files = vec![root.join(HEADER)];
    for entry in fs::read_dir(&from).with_context(|| format!("cannot read {}", from.display()))? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| is_source(&name.to_string_lossy())) {
            files.push(path);
        }
    }
    for file in files {
        let name = file.file_name().unwrap_or_default();
        fs::copy(&file, to.join(name)).with_context(|| format!("cannot copy {}", file.display()))?;
    }
    Ok(())
}

/// Returns true for a file that a build needs, unless a build writes it.
fn is_source(name: &str) -> bool {
    let is_written = name == "config.h" || name.ends_with(".mod.c");
    !is_written && SOURCES.iter().any(|source| name.ends_with(source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_build_are_not_sources() {
        assert!(["Makefile", "Kbuild", "queue.c", "core-x86_64.S", "kernel-btf"].into_iter().all(is_source));
        assert!(!["queue.o", ".queue.o.cmd", "config.h", "hoistway_iosched.mod.c"].into_iter().any(is_source));
    }

    #[test]
    fn a_copy_has_the_header_of_the_library() {
        let directory = std::env::temp_dir().join(format!("hoistway-kernel-sources-{}", std::process::id()));
        copy(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")), &directory).expect("the sources");
        let header = fs::read_to_string(directory.join("hoistway.h")).expect("the header");
        assert!(header.contains("hoistway_queue_init"));
        assert!(directory.join("queue.c").is_file() && !directory.join("exports").exists());
        fs::remove_dir_all(&directory).expect("it exists");
    }
}
