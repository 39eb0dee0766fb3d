//! The declarations of `hoistway.h`: macros with values, enumerations, structures, type names and
//! functions. A declaration of another kind is an error, so that none is overlooked.

use anyhow::{Context, Result, bail};

/// What the header declares, each kind in the header's order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The names of macros with a value.
    pub macros: Vec<String>,
    /// Enumerations: the name of each, and those of its constants.
    pub enumerations: Vec<(String, Vec<String>)>,
    /// Type names and their types.
    pub types: Vec<(String, String)>,
    pub structures: Vec<Structure>,
    pub functions: Vec<Function>,
}

/// A structure with its fields.
#[derive(Debug, PartialEq, Eq)]
pub struct Structure {
    pub name: String,
    pub fields: Vec<Variable>,
}

/// A field or parameter.
#[derive(Debug, PartialEq, Eq)]
pub struct Variable {
    pub name: String,
    /// The type, an array as the pointer that it is as a parameter.
    pub type_: String,
}

/// A function.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    pub result: String,
    pub parameters: Vec<Variable>,
}

impl Header {
    /// Reads the text of a header.
    pub fn read(text: &str) -> Result<Header> {
        let mut header = Header::default();
        let text = header.read_directives(&without_comments(text)?)?;
        let words = words(&text);
        let mut rest = words.as_slice();
        while !rest.is_empty() {
            let end = end_of_declaration(rest).with_context(|| format!("`{}` has no end", spell(rest)))?;
            let declaration = &rest[..end];
            header.add(declaration).with_context(|| format!("the declaration `{}`", spell(declaration)))?;
            rest = &rest[end + 1..];
        }
        Ok(header)
    }

    /// Adds the macros with a value, and returns the text without directives and without the parts
    /// for C++.
    fn read_directives(&mut self, text: &str) -> Result<String> {
        let (mut kept, mut for_cpp) = (String::new(), false);
        for line in text.lines() {
            let Some(directive) = line.trim_start().strip_prefix('#') else {
                if !for_cpp {
                    kept.push_str(line);
                    kept.push('\n');
                }
                continue;
            };
            let words: Vec<&str> = directive.split_whitespace().collect();
            match words.as_slice() {
                ["ifdef", "__cplusplus"] => for_cpp = true,
                ["endif"] => for_cpp = false,
                ["define", name, _, ..] if !name.contains('(') => self.macros.push((*name).to_owned()),
                ["define", _] | ["include" | "ifdef" | "ifndef", _] | ["else"] => {}
                _ => bail!("the directive `{line}` is of no kind that is understood"),
            }
        }
        Ok(kept)
    }

    /// Adds a declaration, given without its semicolon.
    fn add(&mut self, declaration: &[&str]) -> Result<()> {
        match declaration {
            ["struct", _] => {}
            ["struct", name, "{", fields @ .., "}"] => {
                let fields = fields.split(|word| *word == ";").filter(|field| !field.is_empty());
                let fields = fields.map(variable).collect::<Result<_>>()?;
                self.structures.push(Structure { name: (*name).to_owned(), fields });
            }
            ["enum", name, "{", constants @ .., "}"] => {
                let constants = constants.split(|word| *word == ",").filter_map(|constant| constant.first());
                self.enumerations.push(((*name).to_owned(), constants.map(|name| (*name).to_owned()).collect()));
            }
            ["typedef", type_ @ ..] => {
                let Variable { name, type_ } = variable(type_)?;
                self.types.push((name, type_));
            }
            [function @ .., ")"] => {
                let open = function.iter().position(|word| *word == "(").context("no parenthesis opens")?;
                let (head, parameters) = (variable(&function[..open])?, &function[open + 1..]);
                let parameters = parameters.split(|word| *word == ",").filter(|words| *words != ["void"]);
                let parameters = parameters.map(variable).collect::<Result<_>>()?;
                self.functions.push(Function { name: head.name, result: head.type_, parameters });
            }
            _ => bail!("neither a structure, an enumeration, a type name nor a function"),
        }
        Ok(())
    }
}

/// Replaces comments by spaces.
fn without_comments(text: &str) -> Result<String> {
    let (mut kept, mut rest) = (String::new(), text);
    while let Some((before, comment)) = rest.split_once("/*") {
        kept.push_str(before);
        kept.push(' ');
        rest = comment.split_once("*/").context("a comment has no end")?.1;
    }
    kept.push_str(rest);
    Ok(kept)
}

/// Splits a text into names, numbers and marks.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let end = if is_name(first) { rest.find(|c| !is_name(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        let (word, behind) = rest.split_at(end);
        words.push(word);
        rest = behind.trim_start();
    }
    words
}

/// Finds the semicolon that ends the first declaration.
fn end_of_declaration(words: &[&str]) -> Option<usize> {
    let mut depth = 0usize;
    words.iter().position(|word| {
        match *word {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        *word == ";" && depth == 0
    })
}

/// Reads the declaration of one variable: a type and a name, and the length of an array.
fn variable(words: &[&str]) -> Result<Variable> {
    let (words, array) = match words {
        [words @ .., "[", _, "]"] => (words, true),
        _ => (words, false),
    };
    let Some((name, type_)) = words.split_last() else { bail!("a variable without a name") };
    let is_plain = |word: &&&str| word.starts_with(|c: char| c.is_alphabetic() || c == '_') || **word == "*";
    if type_.is_empty() || *name == "*" || words.iter().any(|word| !is_plain(&word)) {
        bail!("`{}` is not one type and one name", spell(words));
    }
    let mut type_ = type_.to_vec();
    if array {
        type_.push("*");
    }
    Ok(Variable { name: (*name).to_owned(), type_: spell(&type_) })
}

/// Joins words as C is written by hand: a space between words, none after an asterisk.
fn spell(words: &[&str]) -> String {
    let mut text = String::new();
    for word in words {
        if !text.is_empty() && !text.ends_with('*') {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
#ifndef A_H
#define A_H
#include <stdint.h>
#ifdef __cplusplus
extern \"C\" {
#endif
#define A_SIZE (1u << 4) /* a size;
                          * of something */
enum a_color { A_RED = 0, A_BLUE = -1 };
struct a_opaque;
typedef uint64_t a_handle;
struct a_pair {
	const char *name; /* a name; */
	uint32_t value;
};
a_handle a_make(const struct a_pair *pair, uint32_t sizes[2]);
void a_stop(void);
#ifdef __cplusplus
}
#endif
#endif
";

    fn variable_of(type_: &str, name: &str) -> Variable {
        Variable { name: name.to_owned(), type_: type_.to_owned() }
    }

    #[test]
    fn declarations_of_every_kind_are_read() {
        let header = Header::read(TEXT).expect("a header");
        assert_eq!(header.macros, ["A_SIZE"]);
        assert_eq!(header.enumerations, [("a_color".into(), vec!["A_RED".into(), "A_BLUE".into()])]);
        assert_eq!(header.types, [("a_handle".into(), "uint64_t".into())]);
        let fields = vec![variable_of("const char *", "name"), variable_of("uint32_t", "value")];
        assert_eq!(header.structures, [Structure { name: "a_pair".into(), fields }]);
        let parameters = vec![variable_of("const struct a_pair *", "pair"), variable_of("uint32_t *", "sizes")];
        let make = Function { name: "a_make".into(), result: "a_handle".into(), parameters };
        let stop = Function { name: "a_stop".into(), result: "void".into(), parameters: Vec::new() };
        assert_eq!(header.functions, [make, stop]);
    }

    #[test]
    fn a_declaration_that_is_not_understood_is_an_error() {
        for text in [
            "struct a { int x : 3; };",
            "struct a { int x, y; };",
            "struct a { union { int x; } y; };",
            "int a;",
            "int a(int (*call)(int));",
            "struct a { int x; }",
            "#define A(x) x",
            "#pragma pack(1)",
            "/* a",
        ] {
            assert!(Header::read(text).is_err(), "{text}: {:?}", Header::read(text));
        }
    }
}
