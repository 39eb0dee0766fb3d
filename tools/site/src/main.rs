//! The generator of the site: the documents of the repository as static pages.
//!
//! `cargo xtask site` runs it. docs/README.md is the table of contents: its sections and lists
//! become the navigation, and every document that it links becomes a page. Documents keep their
//! links within the repository; the generator turns them into links between pages, and links to
//! other files into pages that show these files.
//!
//! Where to change what:
//! - the table of contents: `contents.rs`; where a file of the repository is in the site:
//!   `address.rs`
//! - Markdown to HTML: `markdown.rs`; colours of code: `highlight.rs`; diagrams: `diagram.rs`
//! - generated references of the C and the Python interface: `c_api.rs`, `python_api.rs`; those of
//!   the commands are written by `hoistway man --markdown`
//! - live figures and their tables without scripts: `figure.rs`
//! - the index of the search: `index.rs`; the frame of all pages: `frame.rs` and `assets/`
//! - what the built site is checked for: `check.rs`; in a browser: `browser.rs`

#![forbid(unsafe_code)]

mod address;
mod browser;
mod c_api;
mod check;
mod contents;
mod diagram;
mod figure;
mod frame;
mod highlight;
mod index;
mod markdown;
mod picture;
mod python_api;
mod site;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Parser;

/// Write the site, and check it.
#[derive(Parser, Debug)]
struct Arguments {
    /// The root of the repository
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
    /// The directory of the site; it is created, and emptied if it holds an older site
    #[arg(long, value_name = "DIR", default_value = "target/site")]
    to: PathBuf,
    /// The program `hoistway`, which writes the reference of its commands and runs the figures
    #[arg(long, value_name = "FILE")]
    program: PathBuf,
    /// The built playground, which becomes the folder `playground` of the site
    #[arg(long, value_name = "DIR")]
    playground: Option<PathBuf>,
    /// Also open typical pages in Chromium, and check them there
    #[arg(long)]
    browser: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let playground = arguments.playground.as_deref();
    let pages = site::build(&arguments.root, &arguments.to, &arguments.program, playground)?;
    println!("wrote {pages} pages to {}", arguments.to.display());
    let findings = check::findings(&arguments.to)?;
    if !findings.is_empty() {
        bail!("the site has {} faults:\n{}", findings.len(), findings.join("\n"));
    }
    if arguments.browser {
        let axe = arguments.root.join("web/node_modules/axe-core/axe.min.js");
        println!("{}", browser::check(&arguments.to, axe.is_file().then_some(axe.as_path()))?);
    }
    Ok(())
}
