//! Libraries that the compiler links into a binary and that are not cargo's: Rust's standard
//! library, and musl in the static program.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use hoistway_workspace::programs;
use serde_json::{Value, json};

use crate::binaries::Machine;
use crate::source::Source;
use crate::tree;

/// A library of the compiler.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Runtime {
    /// The name in the list of licences.
    pub title: &'static str,
    /// The licences, as in that list.
    pub licences: &'static str,
    /// The file with the text of the licences.
    pub text: &'static str,
    /// The name in the bill of materials.
    name: &'static str,
    /// The licences as an SPDX expression.
    expression: &'static str,
    /// The repository of the sources.
    repository: &'static str,
}

pub(crate) const RUST: Runtime = Runtime {
    title: "Rust's standard library",
    licences: "MIT OR Apache-2.0, Unicode-3.0",
    text: "packaging/licences/rust-std.txt",
    name: "rust-std",
    expression: "(MIT OR Apache-2.0) AND Unicode-3.0",
    repository: "https://github.com/rust-lang/rust",
};
pub(crate) const MUSL: Runtime = Runtime {
    title: "musl",
    licences: "MIT",
    text: "packaging/licences/musl.txt",
    name: "musl",
    expression: "MIT",
    repository: "https://git.musl-libc.org/git/musl",
};

/// Returns the libraries that the compiler links into a static or another binary. Binaries that are
/// not static use the system's glibc.
pub(crate) fn of(is_static: bool) -> &'static [Runtime] {
    if is_static { &[RUST, MUSL] } else { &[RUST] }
}

/// Returns the libraries of the compiler in a binary as components of a bill of materials.
pub(crate) fn components(source: &Source, is_static: bool, machine: Machine) -> Result<Vec<Value>> {
    let mut components = Vec::new();
    for runtime in of(is_static) {
        let version = if *runtime == MUSL { musl_version(source, machine)? } else { rust_version(source)? };
        components.push(component(runtime, &version));
    }
    Ok(components)
}

/// The component of a library with this version.
pub(crate) fn component(runtime: &Runtime, version: &str) -> Value {
    let purl = format!("pkg:generic/{}@{version}", runtime.name);
    json!({
        "type": "library",
        "bom-ref": purl,
        "name": runtime.name,
        "version": version,
        "purl": purl,
        "description": runtime.title,
        "licenses": [{ "expression": runtime.expression }],
        "externalReferences": [{ "type": "vcs", "url": runtime.repository }],
    })
}

/// The compiler of the repository.
fn rustc(source: &Source, arguments: &[&str]) -> Result<String> {
    programs::output(Command::new("rustc").args(arguments).current_dir(source.root()))
}

/// The version of the standard library, which is that of the compiler.
fn rust_version(source: &Source) -> Result<String> {
    let printed = rustc(source, &["--version", "--verbose"])?;
    let release = printed.lines().find_map(|line| line.strip_prefix("release: "));
    release.map(str::to_owned).context("rustc prints no release")
}

/// The version of the musl that comes with the compiler's target.
fn musl_version(source: &Source, machine: Machine) -> Result<String> {
    let sysroot = PathBuf::from(rustc(source, &["--print", "sysroot"])?.trim());
    let library = sysroot.join("lib/rustlib").join(machine.target()).join("lib/self-contained/libc.a");
    let version = version_in(&tree::read(&library)?);
    version.with_context(|| format!("{} does not have the version of musl", library.display()))
}

/// Finds musl's version in its static library: the text `MAJOR.MINOR.PATCH` in the object file
/// `version.lo`.
fn version_in(archive: &[u8]) -> Option<String> {
    let object = member(archive, "version.lo")?;
    let is_version = |text: &&str| {
        let parts: Vec<&str> = text.split('.').collect();
        parts.len() == 3 && parts.iter().all(|part| !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit()))
    };
    let texts = object.split(|byte| *byte == 0).filter_map(|text| std::str::from_utf8(text).ok());
    texts.into_iter().find(is_version).map(str::to_owned)
}

/// Returns the contents of a file in an archive of `ar` with names in the manner of GNU.
fn member<'a>(archive: &'a [u8], name: &str) -> Option<&'a [u8]> {
    const HEADER_BYTES: usize = 60;
    let mut rest = archive.strip_prefix(b"!<arch>\n")?;
    while let Some((header, behind)) = rest.split_at_checked(HEADER_BYTES) {
        let size: usize = std::str::from_utf8(&header[48..58]).ok()?.trim().parse().ok()?;
        let contents = behind.get(..size)?;
        if header[..16].trim_ascii_end().strip_suffix(b"/") == Some(name.as_bytes()) {
            return Some(contents);
        }
        // Contents begin at even offsets.
        rest = behind.get(size + size % 2..).unwrap_or_default();
    }
    None
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// An archive with these files.
    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = b"!<arch>\n".to_vec();
        for (name, contents) in files {
            let size = contents.len();
            archive
                .extend(format!("{:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", format!("{name}/"), 0, 0, 0, 644).bytes());
            archive.extend(*contents);
            archive.extend(vec![b'\n'; size % 2]);
        }
        archive
    }

    #[test]
    fn the_version_of_musl_is_in_its_static_library() {
        let library = archive(&[("puts.lo", b"9.9.9"), ("version.lo", b"\x7fELF\xff\x001.2.5\0GCC: 9.4.0\0")]);
        assert_eq!(version_in(&library).as_deref(), Some("1.2.5"));
        assert_eq!(version_in(&archive(&[("puts.lo", b"9.9.9")])), None);
        assert_eq!(version_in(&library[..library.len() - 3]), None, "a truncated archive");
        assert_eq!(version_in(b"no archive"), None);
    }

    #[test]
    fn a_component_has_name_version_and_licence() {
        let musl = component(&MUSL, "1.2.5");
        assert_eq!((&musl["name"], &musl["version"]), (&json!("musl"), &json!("1.2.5")));
        assert_eq!(musl["purl"], "pkg:generic/musl@1.2.5");
        assert_eq!(musl["licenses"][0]["expression"], "MIT");
        assert_eq!(component(&RUST, "1.95.0")["licenses"][0]["expression"], "(MIT OR Apache-2.0) AND Unicode-3.0");
    }

    #[test]
    fn the_libraries_of_the_compiler_have_their_licences() {
        for runtime in of(true) {
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(runtime.text);
            let text = fs::read_to_string(file).expect("the text of the licence");
            let permits = text.contains("Permission is hereby granted, free of charge");
            assert!(runtime.licences.contains("MIT") && permits, "{}", runtime.text);
        }
        assert!(!of(false).contains(&MUSL), "the wheel uses the system's glibc");
    }
}
