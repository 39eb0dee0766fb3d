//! Generated parts of documents, each between a pair of comments `begin: NAME` and `end: NAME`.

use std::fs;

use anyhow::{Context, Result};

use crate::repository;

/// Reads a page, given by its path from the root of the repository.
pub fn read_page(page: &str) -> Result<String> {
    fs::read_to_string(repository::root().join(page)).with_context(|| format!("cannot read {page}"))
}

/// Writes a page.
pub fn write_page(page: &str, text: &str) -> Result<()> {
    fs::write(repository::root().join(page), text).with_context(|| format!("cannot write {page}"))?;
    println!("wrote {page}");
    Ok(())
}

/// Writes parts into a page, each between its comments.
pub fn put(file: &str, parts: &[(&str, String)]) -> Result<()> {
    let mut page = read_page(file)?;
    for (name, part) in parts {
        page = with(file, &page, name, part)?;
    }
    write_page(file, &page)
}

/// Returns the text between the comments `begin: NAME` and `end: NAME` of a page.
pub fn of<'a>(file: &str, page: &'a str, name: &str) -> Result<&'a str> {
    let (start, end) = range(file, page, name)?;
    Ok(page[start..end].trim())
}

/// Replaces the text between the comments `begin: NAME` and `end: NAME` of a page.
pub fn with(file: &str, page: &str, name: &str, part: &str) -> Result<String> {
    let (start, end) = range(file, page, name)?;
    Ok(format!("{}\n\n{}\n\n{}", &page[..start], part.trim(), &page[end..]))
}

/// The byte range between the comments of a part.
fn range(file: &str, page: &str, name: &str) -> Result<(usize, usize)> {
    let missing = || format!("{file} has no `<!-- begin: {name}` with an `<!-- end: {name} -->` behind it");
    let begin = page.find(&format!("<!-- begin: {name},")).with_context(missing)?;
    let start = page.get(begin..).and_then(|rest| rest.find("-->")).map(|at| begin + at + 3).with_context(missing)?;
    let end = page.find(&format!("<!-- end: {name} -->")).filter(|end| *end >= start).with_context(missing)?;
    Ok((start, end))
}
