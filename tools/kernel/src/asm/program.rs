//! Makes one assembly file of the listings of the crates: only what the exported functions reach,
//! in an order and with names that depend neither on directories nor on hashes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use anyhow::{Context, Result, bail};

use super::listing::Item;
use super::machine::{Flow, Machine, words};

/// The longest name of a function.
const LONGEST_NAME: usize = 120;

/// The functions and constants of an assembly file.
pub struct Program {
    pub machine: Machine,
    /// In the order of the file: functions, cold functions, constants.
    pub items: Vec<Item>,
    /// The exported functions.
    pub exports: BTreeSet<String>,
}

impl Program {
    /// Selects the items of the listings that the exported functions reach, and renames all others.
    pub fn new(machine: Machine, listings: Vec<Vec<Item>>, exports: &BTreeSet<String>) -> Result<Program> {
        let mut items: BTreeMap<String, Item> = BTreeMap::new();
        for item in listings.into_iter().flatten() {
            if let Some(other) = items.insert(item.name.clone(), item) {
                bail!("two listings define {}", other.name);
            }
        }
        let reached = reached(machine, &items, exports)?;
        items.retain(|name, _| reached.contains(name));
        let mut functions: Vec<(String, Item)> = Vec::new();
        let mut constants = BTreeMap::new();
        for (name, item) in items {
            if item.is_function {
                functions.push((readable(&name), item));
            } else {
                constants.insert(name, item);
            }
        }
        functions.sort_by(|(a, item_a), (b, item_b)| {
            (item_a.is_cold, a, &item_a.body.len()).cmp(&(item_b.is_cold, b, &item_b.body.len()))
        });
        let mut names = BTreeMap::new();
        let mut used = BTreeMap::new();
        let mut ordered = Vec::new();
        for (readable, item) in functions {
            let name = if exports.contains(&item.name) { item.name.clone() } else { unused(&readable, &mut used) };
            names.insert(item.name.clone(), name);
            ordered.push(item);
        }
        number_constants(machine, constants, &mut ordered, &mut names);
        for (number, item) in ordered.iter_mut().enumerate() {
            rename(item, number, &names);
        }
        Ok(Program { machine, items: ordered, exports: exports.clone() })
    }

    /// The functions.
    pub fn functions(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| item.is_function)
    }

    /// The text of the file, with the given head.
    pub fn text(&self, head: &str) -> Result<String> {
        let mut text = head.to_owned();
        let mut section = "";
        for item in &self.items {
            let wanted = match (item.is_function, item.is_cold) {
                (true, false) => "\t.text",
                (true, true) => "\t.section .text.unlikely, \"ax\", @progbits",
                (false, _) => "\t.section .rodata, \"a\", @progbits",
            };
            if section != wanted {
                writeln!(text, "\n{wanted}")?;
                section = wanted;
            }
            self.write(item, &mut text)?;
        }
        writeln!(text, "\n\t.section .note.GNU-stack, \"\", @progbits")?;
        Ok(text)
    }

    fn write(&self, item: &Item, text: &mut String) -> Result<()> {
        let name = &item.name;
        text.push('\n');
        if self.exports.contains(name) {
            writeln!(text, "\t.globl\t{name}")?;
        }
        if let Some(power) = item.alignment {
            writeln!(text, "\t.p2align\t{power}")?;
        }
        if item.is_function {
            writeln!(text, "\t.type\t{name}, @function")?;
        }
        writeln!(text, "{name}:")?;
        if self.machine == Machine::Arm64 && self.exports.contains(name) {
            // `bti c`, which the kernel's entries for far calls need; older assemblers know it so.
            writeln!(text, "\thint\t#34")?;
        }
        for line in &item.body {
            if line.ends_with(':') {
                writeln!(text, "{line}")?;
            } else if self.machine == Machine::X86_64 && self.machine.flow(line) == Flow::Return {
                writeln!(text, "\tHOISTWAY_RETURN")?;
            } else {
                writeln!(text, "\t{line}")?;
            }
        }
        if item.is_function {
            writeln!(text, "\t.size\t{name}, .-{name}")?;
        }
        Ok(())
    }
}

/// The names of the items that the exported functions reach, their own included.
fn reached(machine: Machine, items: &BTreeMap<String, Item>, exports: &BTreeSet<String>) -> Result<BTreeSet<String>> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = exports.iter().map(String::as_str).collect();
    for name in exports {
        if !items.get(name).is_some_and(|item| item.is_function) {
            bail!("the listings do not define {name}, which {} lists", super::EXPORTS);
        }
    }
    while let Some(name) = open.pop() {
        let Some(item) = items.get(name) else { continue };
        if reached.insert(name.to_owned()) {
            open.extend(item.body.iter().flat_map(|line| machine.names(line)));
        }
    }
    Ok(reached)
}

/// Puts the constants after the functions, in the order in which they are named, and numbers them.
fn number_constants(
    machine: Machine,
    mut constants: BTreeMap<String, Item>,
    ordered: &mut Vec<Item>,
    names: &mut BTreeMap<String, String>,
) {
    let mut number = 0;
    let mut at = 0;
    while let Some(item) = ordered.get(at) {
        let found: Vec<Item> =
            item.body.iter().flat_map(|line| machine.names(line)).filter_map(|name| constants.remove(name)).collect();
        for constant in found {
            names.insert(constant.name.clone(), format!(".Lconst{number}"));
            ordered.push(constant);
            number += 1;
        }
        at += 1;
    }
}

/// Renames an item, its labels and what it refers to.
fn rename(item: &mut Item, number: usize, names: &BTreeMap<String, String>) {
    let new = |word: &str| -> Option<String> {
        if let Some(label) = word.strip_prefix(".LBB").and_then(|rest| rest.split_once('_')) {
            return Some(format!(".L{number}_{}", label.1));
        }
        names.get(word).cloned()
    };
    for line in &mut item.body {
        if line.contains('"') {
            continue;
        }
        let mut renamed = String::with_capacity(line.len());
        let mut end = 0;
        for (at, word) in words(line) {
            if let Some(name) = new(word) {
                renamed.push_str(&line[end..at]);
                renamed.push_str(&name);
                end = at + word.len();
            }
        }
        renamed.push_str(&line[end..]);
        *line = renamed.replace("@PLT", "");
    }
    if let Some(name) = names.get(&item.name) {
        item.name.clone_from(name);
    }
}

/// A name for a function that a person can read in a stack trace.
fn readable(mangled: &str) -> String {
    if !mangled.starts_with("_R") {
        return mangled.to_owned();
    }
    let path = format!("{:#}", rustc_demangle::demangle(mangled));
    let path = path
        .replace("hoistway_capi::memory::Fixed", "")
        .replace("hoistway_core::", "")
        .replace("hoistway_capi::", "")
        .replace("elevators::", "")
        .replace(" as elevator::Elevator", "")
        .replace("registry::AnyElevator<, registry::NoLayer>", "inner");
    let mut name = "hw".to_owned();
    for part in path.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|part| !part.is_empty()) {
        name.push('_');
        name.push_str(part);
    }
    name.truncate(LONGEST_NAME - 4);
    name
}

/// The name with the first number that makes it unique.
fn unused(name: &str, used: &mut BTreeMap<String, u32>) -> String {
    let count = used.entry(name.to_owned()).or_default();
    *count += 1;
    if *count == 1 { name.to_owned() } else { format!("{name}_{count}") }
}

/// Reads a list of exported functions: one name a line, `#` begins a comment.
pub fn read_exports(text: &str) -> Result<BTreeSet<String>> {
    let mut exports = BTreeSet::new();
    for (number, line) in text.lines().enumerate() {
        let name = line.split('#').next().unwrap_or_default().trim();
        if name.is_empty() {
            continue;
        }
        let is_name = name.starts_with("hoistway_") && words(name).next() == Some((0, name));
        (is_name && exports.insert(name.to_owned()))
            .then_some(())
            .with_context(|| format!("{}:{}: {name} is no function, or is listed twice", super::EXPORTS, number + 1))?;
    }
    Ok(exports)
}

#[cfg(test)]
mod tests {
    use super::super::listing;
    use super::*;

    const SHARED: &str = "_RNvNtCs2c8TtcUclnC_13hoistway_core5clock4tick";

    fn function(name: &str, body: &str) -> String {
        format!(
            "\t.section\t.text.{name},\"ax\"\n\t.type\t{name},@function\n{name}:\n{body}\n\t.size\t{name}, .-{name}\n"
        )
    }

    fn program(files: &[&str]) -> Program {
        let listings = files.iter().map(|text| listing::read("a.s", text, "#").expect("a listing")).collect();
        Program::new(Machine::X86_64, listings, &BTreeSet::from(["hoistway_next".to_owned()])).expect("a program")
    }

    #[test]
    fn only_what_is_reached_is_kept_and_labels_of_two_files_do_not_collide() {
        let constant = |name: &str| {
            format!("\t.type\t{name},@object\n\t.section\t.rodata.{name}\n{name}:\n\t.zero\t8\n\t.size\t{name}, 8\n")
        };
        let first = function("hoistway_next", &format!(".LBB0_1:\n\tjne\t.LBB0_1\n\tcallq\t{SHARED}\n\tretq"));
        let first = first + &function("hoistway_switch", "\tcallq\t_Rfmt\n\tretq") + &function("_Rfmt", "\tretq");
        let second = function(SHARED, ".LBB0_1:\n\tmovq\t.Lanon.7.4+8(%rax), %rax\n\tjne\t.LBB0_1\n\tretq");
        let second = second + &constant(".Lanon.7.4") + &constant(".Lanon.7.5");
        let program = program(&[&first, &second]);
        let names: Vec<&str> = program.items.iter().map(|item| item.name.as_str()).collect();
        assert_eq!(names, ["hoistway_next", "hw_clock_tick", ".Lconst0"]);
        assert_eq!(program.items[0].body, [".L0_1:", "jne\t.L0_1", "callq\thw_clock_tick", "retq"]);
        assert_eq!(program.items[1].body[..2], [".L1_1:", "movq\t.Lconst0+8(%rax), %rax"]);
        let text = program.text("").expect("text");
        assert!(text.contains("\t.globl\thoistway_next\n") && !text.contains("\t.globl\thw_clock_tick"));
        assert!(text.contains("\tHOISTWAY_RETURN\n") && !text.contains("ret\n"), "{text}");
    }

    #[test]
    fn the_result_does_not_depend_on_hashes_of_crates() {
        let caller = |callee: &str| function("hoistway_next", &format!("\tjmp\t{callee}"));
        let texts = [SHARED, "_RNvNtCsfoPS0G6G1Ka_13hoistway_core5clock4tick"]
            .map(|callee| program(&[&caller(callee), &function(callee, "\tretq")]).text("").expect("text"));
        assert_eq!(texts[0], texts[1]);
    }

    #[test]
    fn an_exported_function_that_is_not_defined_is_an_error() {
        let exports = BTreeSet::from(["hoistway_next".to_owned()]);
        let error = Program::new(Machine::X86_64, Vec::new(), &exports).err().expect("undefined").to_string();
        assert!(error.contains("do not define hoistway_next"), "{error}");
        assert!(read_exports("hoistway_next\nnext\n").is_err() && read_exports("hoistway_a\nhoistway_a\n").is_err());
        assert_eq!(read_exports("# all\nhoistway_next # one\n\n").expect("a list"), exports);
    }
}
