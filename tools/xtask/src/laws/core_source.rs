//! The laws of the core that can be read from its source: no unsafe code, no floats, no dynamic
//! dispatch, no dependencies.

use anyhow::{Result, bail};

use hoistway_rusttokens::{self as rust_tokens, Kind, Token};
use hoistway_workspace::repository::{self, File};

/// Lists what breaks the laws of the core.
pub fn violations() -> Result<Vec<String>> {
    let mut found = source()?;
    found.extend(dependencies(&std::fs::read_to_string(repository::root().join("crates/core/Cargo.toml"))?)?);
    Ok(found)
}

fn source() -> Result<Vec<String>> {
    let files = repository::rust_files("crates/core/src")?;
    let mut found: Vec<String> = files.iter().flat_map(violations_in).collect();
    let Some(top) = files.iter().find(|file| file.path.ends_with("/lib.rs")) else {
        bail!("crates/core/src/lib.rs is missing")
    };
    for attribute in ["#![no_std]", "#![forbid(unsafe_code)]"] {
        if !top.text.lines().any(|line| line.trim() == attribute) {
            found.push(format!("{}: {attribute} is missing", top.path));
        }
    }
    Ok(found)
}

/// Lists the places at which a file of the core breaks a law, tests excepted.
fn violations_in(file: &File) -> Vec<String> {
    if file.path.ends_with("/tests.rs") {
        return Vec::new();
    }
    let tokens = rust_tokens::without_tests(&rust_tokens::tokens(&file.text));
    let mut found = Vec::new();
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
        found.push(format!("{}:{}: {what}", file.path, token.line));
    }
    found
}

fn is_extern_crate(tokens: &[Token], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).and_then(|index| tokens.get(index));
    before(1).is_some_and(|token| token.is("crate")) && before(2).is_some_and(|token| token.is("extern"))
}

/// Finds the dependencies in the manifest of the core: it may have none, neither optional nor for
/// builds nor for one target.
fn dependencies(manifest: &str) -> Result<Vec<String>> {
    let manifest: toml::Table = manifest.parse()?;
    let mut found = Vec::new();
    for key in ["dependencies", "build-dependencies", "target"] {
        if manifest.get(key).and_then(toml::Value::as_table).is_some_and(|table| !table.is_empty()) {
            found.push(format!("crates/core/Cargo.toml: [{key}] must be empty"));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        violations_in(&File { path: "a.rs".to_owned(), text: text.to_owned() })
    }

    #[test]
    fn each_law_can_be_found() {
        for text in [
            "const X: u32 = 1.5;",
            "fn a(x: f64) {}",
            "fn a() { unsafe {} }",
            "fn a(x: &dyn Copy) {}",
            "struct A { f: fn(u32) }",
            "extern crate std;",
            "use std::vec::Vec;",
        ] {
            assert_eq!(found(text).len(), 1, "{text}: {:?}", found(text));
        }
    }

    #[test]
    fn lawful_code_and_tests_pass() {
        let text = "// unsafe dyn 1.5\nfn a(f: impl Fn(u32)) { b(\"fn(\"); }\n#[cfg(test)]\nextern crate std;\n#[cfg(test)]\nmod tests { fn f() -> f64 { 1.5 } }";
        assert_eq!(found(text), [""; 0]);
        assert_eq!(found("\n\nfn a() -> f32 {}"), ["a.rs:3: a floating-point type"]);
    }

    #[test]
    fn a_dependency_of_the_core_is_found_in_any_section() {
        assert_eq!(dependencies("[package]\n[dependencies]\n[dev-dependencies]\na = '1'").unwrap(), [""; 0]);
        for text in
            ["[dependencies]\na = '1'", "[build-dependencies]\na = '1'", "[target.'cfg(unix)'.dependencies]\na = '1'"]
        {
            assert_eq!(dependencies(text).unwrap().len(), 1, "{text}");
        }
    }
}
