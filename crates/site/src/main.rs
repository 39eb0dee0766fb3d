//! The generator of the site: the documents of the repository as static pages.
//!
//! `cargo xtask site` runs it. docs/README.md is the table of contents: its sections and lists
//! become the navigation, and every document that it links becomes a page. Documents keep their
//! links within the repository; the generator turns them into links between pages, and links to
//! other files into pages that show these files.
//!
//! Where to change what:
//! - the table of contents: `contents.rs`; where a file of the repository lies in the site:
//!   `address.rs`
//! - Markdown to HTML: `markdown.rs`; colours of code: `highlight.rs`; diagrams: `diagram.rs`
//! - generated references of the C and the Python interface: `c_api.rs`, `python_api.rs`; those of
//!   the commands are written by `hoistway man --markdown`
//! - live figures and their tables without scripts: `figure.rs`
//! - the index of the search: `index.rs`; the frame of all pages: `frame.rs` and `assets/`
//! - what the built site is checked for: `check.rs`

#![forbid(unsafe_code)]

mod address;
mod c_api;
mod check;
mod contents;
mod diagram;
mod figure;
mod frame;
mod highlight;
mod index;
mod markdown;
mod python_api;
mod site;

use std::path::PathBuf;
use std::process::ExitCode;

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
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let built = site::build(&arguments.root, &arguments.to, &arguments.program, arguments.playground.as_deref())
        .and_then(|pages| {
            let findings = check::findings(&arguments.to)?;
            Ok((pages, findings))
        });
    match built {
        Ok((pages, findings)) if findings.is_empty() => {
            println!("wrote {pages} pages to {}", arguments.to.display());
            ExitCode::SUCCESS
        }
        Ok((_, findings)) => {
            findings.iter().for_each(|finding| eprintln!("{finding}"));
            eprintln!("error: the site has {} faults", findings.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
