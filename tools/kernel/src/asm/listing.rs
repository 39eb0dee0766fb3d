//! Reads the assembly that rustc writes: functions and constants, each with its lines.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

/// A function or a constant of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The symbol.
    pub name: String,
    /// True for code, false for data.
    pub is_function: bool,
    /// True for functions that the compiler expects to run seldom.
    pub is_cold: bool,
    /// The alignment as a power of two, if one is given.
    pub alignment: Option<u32>,
    /// Instructions, local labels and data, without indentation and comments.
    pub body: Vec<String>,
}

/// Directives that say nothing about code or data.
const IGNORED: [&str; 6] = [".file", ".ident", ".addrsig", ".addrsig_sym", ".globl", ".hidden"];

/// Directives that may stand in the body of an item.
const DATA: [&str; 11] =
    [".ascii", ".asciz", ".byte", ".short", ".hword", ".long", ".word", ".quad", ".xword", ".zero", ".p2align"];

/// Reads a listing. `comment` begins a comment. Errors name the line.
pub fn read(file: &str, text: &str, comment: &str) -> Result<Vec<Item>> {
    let mut reader = Reader::default();
    for (number, line) in text.lines().enumerate() {
        let line = without_comment(line, comment);
        if let Err(error) = reader.line(line) {
            bail!("{file}:{}: {error}: {line}", number + 1);
        }
    }
    match reader.open {
        Some(item) => bail!("{file}: {} has no end", item.name),
        None => Ok(reader.items),
    }
}

/// The line without surrounding space and without a comment, which cannot begin in a string.
fn without_comment<'a>(line: &'a str, comment: &str) -> &'a str {
    let line = line.trim();
    if line.contains('"') {
        return line;
    }
    line.find(comment).map_or(line, |at| line[..at].trim_end())
}

#[derive(Default)]
struct Reader {
    items: Vec<Item>,
    /// True for a function, false for an object, by the name of the symbol.
    kinds: BTreeMap<String, bool>,
    section: String,
    alignment: Option<u32>,
    open: Option<Item>,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<()> {
        if line.is_empty() {
            return Ok(());
        }
        if let Some(label) = line.strip_suffix(':') {
            return self.label(label);
        }
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            _ if word.starts_with(".cfi_") || IGNORED.contains(&word) => {}
            ".text" | ".section" => self.section(word, rest)?,
            ".type" => {
                let Some((name, kind)) = rest.split_once(',') else { bail!("a type without a comma") };
                self.kinds.insert(name.to_owned(), kind.contains("function"));
            }
            ".size" => {
                let name = rest.split(',').next().unwrap_or_default();
                match self.open.take() {
                    Some(item) if item.name == name => self.items.push(item),
                    _ => bail!("the size of an item that is not open"),
                }
            }
            ".p2align" if self.open.is_none() => {
                let power = rest.split(',').next().unwrap_or_default().trim();
                self.alignment = Some(power.parse()?);
            }
            _ if word.starts_with('.') && !DATA.contains(&word) => bail!("an unknown directive"),
            _ => match &mut self.open {
                Some(item) if item.is_function && word != ".p2align" && word.starts_with('.') => {
                    bail!("data inside a function")
                }
                Some(item) => item.body.push(line.to_owned()),
                None => bail!("code or data without a name"),
            },
        }
        Ok(())
    }

    fn section(&mut self, word: &str, rest: &str) -> Result<()> {
        if let Some(item) = &self.open {
            bail!("{} has no size", item.name);
        }
        let name = if word == ".text" { word } else { rest.split(',').next().unwrap_or_default() };
        name.trim_matches('"').clone_into(&mut self.section);
        self.alignment = None;
        Ok(())
    }

    fn label(&mut self, label: &str) -> Result<()> {
        if label.starts_with(".Lfunc_end") || label.starts_with(".Lfunc_begin") {
            return Ok(());
        }
        if let Some(&is_function) = self.kinds.get(label) {
            if let Some(item) = &self.open {
                bail!("{} has no size", item.name);
            }
            let expected: &[&str] = if is_function { &[".text"] } else { &[".rodata", ".data.rel.ro"] };
            if !expected.iter().any(|name| self.section.starts_with(name)) {
                bail!("{label} is in the section {}", self.section);
            }
            self.open = Some(Item {
                name: label.to_owned(),
                is_function,
                is_cold: self.section.starts_with(".text.unlikely"),
                alignment: self.alignment.take(),
                body: Vec::new(),
            });
            return Ok(());
        }
        match &mut self.open {
            Some(item) if item.is_function && label.starts_with(".L") => item.body.push(format!("{label}:")),
            _ => bail!("an unexpected label"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = "
\t.section\t.text.unlikely._Rfirst,\"ax\",@progbits
\t.p2align\t4
\t.type\t_Rfirst,@function
_Rfirst:
\t.cfi_startproc
\tmovl\t$.Lanon.12.3, %eax # comment
.LBB0_1:
\tretq
.Lfunc_end0:
\t.size\t_Rfirst, .Lfunc_end0-_Rfirst

\t.type\t.Lanon.12.3,@object
\t.section\t.rodata..Lanon.12.3,\"a\",@progbits
\t.p2align\t3, 0x0
.Lanon.12.3:
\t.ascii\t\"# no comment\"
\t.size\t.Lanon.12.3, 12
";

    #[test]
    fn functions_and_constants_are_read_with_their_alignment() {
        let items = read("a.s", LISTING, "#").expect("a good listing");
        let [function, constant] = items.as_slice() else { panic!("two items: {items:?}") };
        assert!(function.is_function && function.is_cold && function.alignment == Some(4));
        assert_eq!(function.body, ["movl\t$.Lanon.12.3, %eax", ".LBB0_1:", "retq"]);
        assert!(!constant.is_function && constant.alignment == Some(3));
        assert_eq!(constant.body, [".ascii\t\"# no comment\""]);
    }

    #[test]
    fn an_unknown_directive_is_an_error_that_names_the_line() {
        let error = read("a.s", "\n\t.weird\t1\n", "#").expect_err("unknown").to_string();
        assert_eq!(error, "a.s:2: an unknown directive: .weird\t1");
        let error = read("a.s", "\tnop\n", "#").expect_err("nowhere").to_string();
        assert!(error.contains("code or data without a name"), "{error}");
    }

    #[test]
    fn writable_data_is_an_error() {
        let text = LISTING.replace(".rodata..", ".data..");
        let error = read("a.s", &text, "#").expect_err("writable").to_string();
        assert!(error.contains("is in the section .data..Lanon.12.3"), "{error}");
    }
}
