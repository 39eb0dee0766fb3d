//! The laws of the core that can be read from its source.

use anyhow::{Result, bail};

use crate::repository::{self, File};
use crate::tokens::{self, Kind, Token};
use crate::{arrows, bare};

/// Checks all laws but the proof.
pub fn run() -> Result<()> {
    let mut broken = source()?;
    broken.extend(dependencies(&std::fs::read_to_string(repository::root().join("crates/core/Cargo.toml"))?)?);
    broken.extend(arrows::check()?);
    if !broken.is_empty() {
        bail!("{} broken laws:\n  {}", broken.len(), broken.join("\n  "));
    }
    bare::build()?;
    println!("laws: the core's source, dependencies, a bare build and the arrows between crates are as they must be");
    Ok(())
}

fn source() -> Result<Vec<String>> {
    let files = repository::rust_files("crates/core/src")?;
    let mut broken: Vec<String> = files.iter().flat_map(broken_in).collect();
    let Some(top) = files.iter().find(|file| file.path.ends_with("/lib.rs")) else {
        bail!("crates/core/src/lib.rs is missing")
    };
    for attribute in ["#![no_std]", "#![forbid(unsafe_code)]"] {
        if !top.text.lines().any(|line| line.trim() == attribute) {
            broken.push(format!("{}: {attribute} is missing", top.path));
        }
    }
    Ok(broken)
}

/// The laws that a file of the core breaks, outside of its tests.
fn broken_in(file: &File) -> Vec<String> {
    if file.path.ends_with("/tests.rs") {
        return Vec::new();
    }
    let tokens = tokens::without_tests(&tokens::tokens(&file.text));
    let mut broken = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1);
        let what = match token.text.as_str() {
            _ if token.kind == Kind::Float => "a floating-point number",
            "f32" | "f64" if token.kind == Kind::Word => "a floating-point type",
            "unsafe" if token.kind == Kind::Word => "unsafe",
            "dyn" if token.kind == Kind::Word => "dyn",
            "fn" if token.kind == Kind::Word && next.is_some_and(|next| next.is("(")) => "a function pointer",
            "std" if is_extern_crate(&tokens, at) => "extern crate std outside of tests",
            "std" if next.is_some_and(|next| next.is(":")) && token.kind == Kind::Word => "a path into std",
            _ => continue,
        };
        broken.push(format!("{}:{}: {what}", file.path, token.line));
    }
    broken
}

fn is_extern_crate(tokens: &[Token], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).and_then(|index| tokens.get(index));
    before(1).is_some_and(|token| token.is("crate")) && before(2).is_some_and(|token| token.is("extern"))
}

/// The core stands on nothing: its manifest names no dependency, whether optional, for building or for one target.
fn dependencies(manifest: &str) -> Result<Vec<String>> {
    let manifest: toml::Table = manifest.parse()?;
    let mut broken = Vec::new();
    for key in ["dependencies", "build-dependencies", "target"] {
        if manifest.get(key).and_then(toml::Value::as_table).is_some_and(|table| !table.is_empty()) {
            broken.push(format!("crates/core/Cargo.toml: [{key}] must be empty"));
        }
    }
    Ok(broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(text: &str) -> Vec<String> {
        broken_in(&File { path: "a.rs".to_owned(), text: text.to_owned() })
    }

    #[test]
    fn each_law_can_be_broken() {
        for text in [
            "const X: u32 = 1.5;",
            "fn a(x: f64) {}",
            "fn a() { unsafe {} }",
            "fn a(x: &dyn Copy) {}",
            "struct A { f: fn(u32) }",
            "extern crate std;",
            "use std::vec::Vec;",
        ] {
            assert_eq!(broken(text).len(), 1, "{text}: {:?}", broken(text));
        }
    }

    #[test]
    fn lawful_code_passes_and_tests_may_do_as_they_like() {
        let text = "// unsafe dyn 1.5\nfn a(f: impl Fn(u32)) { b(\"fn(\"); }\n#[cfg(test)]\nextern crate std;\n#[cfg(test)]\nmod tests { fn f() -> f64 { 1.5 } }";
        assert_eq!(broken(text), [""; 0]);
        assert_eq!(broken("\n\nfn a() -> f32 {}"), ["a.rs:3: a floating-point type"]);
    }

    #[test]
    fn a_dependency_of_the_core_is_found_wherever_it_is() {
        assert_eq!(dependencies("[package]\n[dependencies]\n[dev-dependencies]\na = '1'").unwrap(), [""; 0]);
        for text in
            ["[dependencies]\na = '1'", "[build-dependencies]\na = '1'", "[target.'cfg(unix)'.dependencies]\na = '1'"]
        {
            assert_eq!(dependencies(text).unwrap().len(), 1, "{text}");
        }
    }
}
