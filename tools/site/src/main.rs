//! The site: the documents of the repository as static pages, and the playground.
//! docs/README.md is the table of contents: its sections and lists
//! become the navigation, and every document that it links becomes a page. Documents keep their
//! links within the repository; the generator turns them into links between pages, and links to
//! other files into pages that show these files.
//!
//! Where to change what:
//! - what the site is made from: `task.rs`; the playground: `playground.rs` and `web/`
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
mod playground;
mod python_api;
mod site;
mod task;

use std::process::ExitCode;

use hoistway_workspace::tasks::{self, Program};

#[derive(clap::Subcommand, Debug)]
enum Task {
    Site(task::Options),
    Playground(playground::Options),
}

fn main() -> ExitCode {
    tasks::main(Program::Site, |task| match task {
        Task::Site(options) => task::run(&options),
        Task::Playground(options) => playground::run(&options),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_has_the_tasks_of_the_list() {
        tasks::assert_consistent::<Task>(Program::Site);
    }
}
