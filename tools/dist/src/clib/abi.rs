//! The description of the ABI, crates/capi/abi.txt: a line for each constant, type name, structure,
//! field and function of the header.
//!
//! A program in C that includes the header prints sizes, offsets and values. The words of a line
//! before the first ` = ` name an entry, those after it are what programs depend on.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};
use hoistway_workspace::programs;

use super::header::Header;
use super::{HEADER, Workspace, soname};

/// The description, from the root of the repository.
const DESCRIPTION: &str = "crates/capi/abi.txt";

const HEAD: &str = "# The ABI of libhoistway on machines of 64 bits. `cargo xtask clib --write-abi` writes this file.
# docs/c-library.md says which changes need another soname.
";

/// Compares the header with the description. The error lists what differs.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let changes = Changes::between(&read(workspace)?, &describe(workspace)?);
    if changes.is_empty() {
        return Ok(());
    }
    bail!("{HEADER} is not what {DESCRIPTION} describes: run cargo xtask clib --write-abi\n{}", changes.report())
}

/// Writes the description and returns a report of the changes. Refuses incompatible changes under
/// the same soname, unless that soname was not released yet.
pub fn write(workspace: &Workspace, unreleased: bool) -> Result<String> {
    let path = workspace.root.join(DESCRIPTION);
    let new = describe(workspace)?;
    let changes = if path.exists() { Changes::between(&read(workspace)?, &new) } else { Changes::default() };
    if changes.is_incompatible() && !unreleased {
        bail!(
            "incompatible changes need another soname than {}: raise `ABI` in tools/clib/src/lib.rs, or pass \
             --unreleased if no release has this soname\n{}",
            soname(),
            changes.report()
        );
    }
    fs::write(&path, new).with_context(|| format!("cannot write {DESCRIPTION}"))?;
    Ok(format!("{}wrote {DESCRIPTION}\n", changes.report()))
}

fn read(workspace: &Workspace) -> Result<String> {
    fs::read_to_string(workspace.root.join(DESCRIPTION)).with_context(|| format!("cannot read {DESCRIPTION}"))
}

/// Returns the description of the header as it is.
fn describe(workspace: &Workspace) -> Result<String> {
    if cfg!(not(target_pointer_width = "64")) {
        bail!("{DESCRIPTION} describes machines of 64 bits, and this is none");
    }
    let header = super::header(workspace)?;
    let directory = workspace.target_directory.join("clib-abi");
    fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let (source, program) = (directory.join("describe.c"), directory.join("describe"));
    super::write(&source, describing_program(&header).as_bytes())?;
    let include = workspace.root.join(HEADER);
    let include = include.parent().context("the header has a directory")?;
    programs::run(Command::new("cc").args(["-std=c11", "-I"]).arg(include).arg(&source).arg("-o").arg(&program))?;
    let layout = programs::output(&mut Command::new(&program))?;
    Ok(format!("{HEAD}\nsoname = {}\n{layout}{}", soname(), functions(&header)))
}

/// Returns a program that prints the description of constants and structures.
fn describing_program(header: &Header) -> String {
    let mut body = String::new();
    let mut print = |format: &str, values: &[String]| {
        let values: String = values.iter().map(|value| format!(", (long long)({value})")).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(body, "\tprintf(\"{format}\\n\"{values});");
    };
    for name in &header.macros {
        print(&format!("constant {name} = %lld"), std::slice::from_ref(name));
    }
    for (enumeration, constants) in &header.enumerations {
        print("", &[]);
        for name in constants {
            print(&format!("enum {enumeration} {name} = %lld"), std::slice::from_ref(name));
        }
    }
    print("", &[]);
    for (name, type_) in &header.types {
        print(&format!("type {name} = {type_}, size %lld"), &[format!("sizeof({name})")]);
    }
    for structure in &header.structures {
        let name = format!("struct {}", structure.name);
        print("", &[]);
        print(
            &format!("{name} = size %lld, alignment %lld"),
            &[format!("sizeof({name})"), format!("_Alignof({name})")],
        );
        for field in &structure.fields {
            let (field, type_) = (&field.name, &field.type_);
            let size = format!("sizeof((({name} *)0)->{field})");
            print(
                &format!("{name} {field} = offset %lld, size %lld, {type_}"),
                &[format!("offsetof({name}, {field})"), size],
            );
        }
    }
    print("", &[]);
    format!("#include <stddef.h>\n#include <stdio.h>\n#include \"hoistway.h\"\n\nint main(void)\n{{\n{body}}}\n")
}

/// Returns the lines of the functions.
fn functions(header: &Header) -> String {
    let mut lines = String::new();
    for function in &header.functions {
        let types: Vec<&str> = function.parameters.iter().map(|parameter| parameter.type_.as_str()).collect();
        let types = if types.is_empty() { "void".to_owned() } else { types.join(", ") };
        let _ = writeln!(lines, "function {} = {} ({types})", function.name, function.result);
    }
    lines
}

/// The differences of two descriptions.
#[derive(Debug, Default)]
struct Changes {
    /// Lines that programs built with the old header depend on, and that are gone or differ.
    incompatible: Vec<String>,
    /// What old programs do not use.
    additions: Vec<String>,
}

impl Changes {
    fn between(old: &str, new: &str) -> Changes {
        let (old, new) = (entries(old), entries(new));
        // With another soname old programs keep the old library.
        let renamed = old.get("soname") != new.get("soname");
        let mut changes = Changes::default();
        for (name, before) in &old {
            match new.get(name) {
                Some(after) if after == before => {}
                Some(after) if renamed => changes.additions.push(format!("~ {name} = {before} -> {after}")),
                Some(after) => changes.incompatible.push(format!("~ {name} = {before} -> {after}")),
                None if renamed => changes.additions.push(format!("- {name} = {before}")),
                None => changes.incompatible.push(format!("- {name} = {before}")),
            }
        }
        for (name, after) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
            let line = format!("+ {name} = {after}");
            // A field where padding was: old programs do not set it.
            let structure: Vec<&str> = name.split(' ').take(2).collect();
            let grows = name.starts_with("struct ") && old.contains_key(structure.join(" ").as_str());
            if grows && !renamed { &mut changes.incompatible } else { &mut changes.additions }.push(line);
        }
        changes
    }

    fn is_empty(&self) -> bool {
        self.incompatible.is_empty() && self.additions.is_empty()
    }

    fn is_incompatible(&self) -> bool {
        !self.incompatible.is_empty()
    }

    fn report(&self) -> String {
        let mut report = String::new();
        for (title, lines) in [("incompatible", &self.incompatible), ("compatible", &self.additions)] {
            if !lines.is_empty() {
                let _ = writeln!(report, "{title}:\n  {}", lines.join("\n  "));
            }
        }
        report
    }
}

/// The entries of a description: the name of each and what it is.
fn entries(text: &str) -> BTreeMap<&str, &str> {
    text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(" = ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "soname = libhoistway.so.0\nenum a A = 0\nstruct s = size 8, alignment 4\n\
                       struct s x = offset 0, size 4, uint32_t\nfunction f = int32_t (void)\n";

    fn incompatible(new: &str) -> Vec<String> {
        Changes::between(OLD, new).incompatible
    }

    #[test]
    fn removed_and_changed_entries_are_incompatible() {
        assert_eq!(incompatible(OLD), [""; 0]);
        assert_eq!(incompatible(&OLD.replace("A = 0", "A = 1")), ["~ enum a A = 0 -> 1"]);
        assert_eq!(incompatible(&OLD.replace("function f", "# f")), ["- function f = int32_t (void)"]);
        let grown = OLD.replace("size 8", "size 12");
        assert_eq!(incompatible(&grown), ["~ struct s = size 8, alignment 4 -> size 12, alignment 4"]);
    }

    #[test]
    fn a_new_field_is_incompatible_and_a_new_function_constant_or_structure_is_not() {
        let field = "struct s y = offset 4, size 4, uint32_t";
        assert_eq!(incompatible(&format!("{OLD}{field}\n")), [format!("+ {field}")]);
        let added =
            format!("{OLD}function g = void (void)\nenum a B = 1\nstruct t = size 4, alignment 4\nstruct t x = 0\n");
        let changes = Changes::between(OLD, &added);
        assert!(!changes.is_incompatible());
        assert_eq!(changes.additions.len(), 4);
    }

    #[test]
    fn with_another_soname_every_change_is_allowed() {
        let new = OLD.replace(".so.0", ".so.1").replace("A = 0", "A = 1").replace("function f", "function g");
        assert!(!Changes::between(OLD, &new).is_incompatible());
    }
}
