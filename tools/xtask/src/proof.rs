//! The proof that the core cannot panic.
//!
//! `hoistway-capi` is compiled to a static library with overflow checks and optimised as one piece.
//! Its panic handler calls a function without a definition. If the compiler cannot show that a
//! panic is unreachable, that function is among the undefined symbols of the object. Otherwise the
//! only undefined symbols are functions that copy and compare memory.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context, Result, bail};
use hoistway_workspace::cargo::Workspace;
use hoistway_workspace::{object, programs};

/// The panic path that the feature `proof-selftest` adds.
const SELFTEST: &str = "hoistway_proof_selftest";

/// Runs the proof, after a check that the proof detects a planted panic.
pub fn run() -> Result<()> {
    let planted = examine("proof-selftest").context("the proof's own test")?;
    if !planted.culprits().contains(SELFTEST) {
        bail!("the proof does not detect a planted panic: the undefined symbols are {}", join(&planted.undefined));
    }
    println!("proof: a planted panic is detected in {SELFTEST}");
    let object = examine("proof")?;
    let forbidden = object.forbidden();
    println!("proof: undefined symbols of the core's object: {}", join(&object.undefined));
    if forbidden.is_empty() {
        println!("proof: the core cannot panic");
        return Ok(());
    }
    let mut report = format!("the core's object refers to {}", forbidden.join(", "));
    for symbol in forbidden {
        for user in object.users(symbol) {
            report.push_str(&format!("\n  {symbol} is reached from {user}"));
        }
    }
    bail!("{report}")
}

fn join(names: &BTreeSet<String>) -> String {
    if names.is_empty() { "none".to_owned() } else { names.iter().cloned().collect::<Vec<_>>().join(", ") }
}

/// Builds the library with a feature and looks into the object that holds our code.
fn examine(feature: &str) -> Result<Object> {
    let object = object::build(&Workspace::this()?, feature)?;
    let undefined = programs::output(Command::new("nm").args(["--undefined-only"]).arg(&object))?;
    let code =
        programs::output(Command::new("objdump").args(["-dr", "--no-show-raw-insn", "--no-addresses"]).arg(&object))?;
    Ok(Object::read(&undefined, &code))
}

/// The undefined symbols of an object, and the references between its functions.
struct Object {
    undefined: BTreeSet<String>,
    /// The functions that refer to each name.
    callers: BTreeMap<String, BTreeSet<String>>,
}

impl Object {
    fn read(undefined: &str, code: &str) -> Object {
        let undefined =
            undefined.lines().filter_map(|line| line.split_whitespace().next_back()).map(str::to_owned).collect();
        let mut callers: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut function = String::new();
        for line in code.lines() {
            if let Some(name) = line.strip_prefix('<').and_then(|line| line.strip_suffix(">:")) {
                name.clone_into(&mut function);
            } else if let Some((_, target)) =
                line.split_once("R_X86_64_").and_then(|(_, rest)| rest.split_once(char::is_whitespace))
            {
                callers.entry(referred(target)).or_default().insert(function.clone());
            } else if let Some((_, target)) =
                line.split_once("R_AARCH64_").and_then(|(_, rest)| rest.split_once(char::is_whitespace))
            {
                callers.entry(referred(target)).or_default().insert(function.clone());
            }
        }
        Object { undefined, callers }
    }

    fn forbidden(&self) -> Vec<&str> {
        self.undefined.iter().map(String::as_str).filter(|name| !object::ALLOWED.contains(name)).collect()
    }

    /// Our functions from which the forbidden symbols are reached.
    fn culprits(&self) -> BTreeSet<String> {
        self.forbidden().into_iter().flat_map(|symbol| self.users(symbol)).collect()
    }

    /// The functions outside of the standard library from which a symbol is reached.
    fn users(&self, symbol: &str) -> BTreeSet<String> {
        let (mut ours, mut seen, mut open) = (BTreeSet::new(), BTreeSet::new(), vec![symbol.to_owned()]);
        while let Some(name) = open.pop() {
            for caller in self.callers.get(&name).into_iter().flatten() {
                if !seen.insert(caller.clone()) {
                    continue;
                }
                if caller.contains("hoistway") {
                    ours.insert(caller.clone())
                } else {
                    open.push(caller.clone());
                    false
                };
            }
        }
        ours
    }
}

/// The name in a relocation: without its offset, and of a function where the relocation names the
/// section that holds only it.
fn referred(target: &str) -> String {
    let target = target.trim();
    let end = target.rfind("+0x").or_else(|| target.rfind("-0x")).unwrap_or(target.len());
    let name = &target[..end];
    let name =
        [".text.unlikely.", ".text.hot.", ".text."].iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "
<_ZN4core9panicking9panic_fmt>:
\tcall   x
\t\t\tR_X86_64_GOTPCREL\thoistway_core_can_panic-0x4
<hoistway_submit>:
\tcall   y
\t\t\tR_X86_64_PLT32\t.text.unlikely._ZN4core9panicking9panic_fmt-0x4
<hoistway_next>:
\tcall   z
\t\t\tR_X86_64_PLT32\tmemcpy-0x4
";

    #[test]
    fn the_function_that_can_panic_is_named_and_an_innocent_one_is_not() {
        let object = Object::read("memcpy\nhoistway_core_can_panic\n", CODE);
        assert_eq!(object.forbidden(), ["hoistway_core_can_panic"]);
        assert_eq!(object.culprits().into_iter().collect::<Vec<_>>(), ["hoistway_submit"]);
    }

    #[test]
    fn copying_memory_is_allowed_and_dividing_wide_numbers_is_not() {
        assert_eq!(Object::read("bcmp\nmemcpy\nmemset\n", "").forbidden(), [""; 0]);
        assert_eq!(Object::read("__udivti3\nmemcmp\n", "").forbidden(), ["__udivti3"]);
    }
}
