//! The task of the site. The crate `hoistway-site` builds and checks it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::repository;
use crate::tools::{self, cargo};

/// Options of the site.
#[derive(clap::Args, Debug, Default)]
pub struct Options {
    /// The directory of the site [default: site in the target directory]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Also open typical pages in Chromium, and check them there
    #[arg(long)]
    browser: bool,
}

/// Builds the site and checks its links. The playground becomes a part of it if it is built.
pub fn run(options: &Options) -> Result<()> {
    let target = tools::target_directory()?;
    let to = options.to.clone().unwrap_or_else(|| target.join("site"));
    // The programs that the tests built, with the same features of all crates.
    tools::run(cargo().args(["build", "--quiet", "--workspace", "--bin", "hoistway-site", "--bin", "hoistway"]))?;
    let built = target.join("debug");
    let mut command = Command::new(built.join("hoistway-site"));
    command.arg("--root").arg(repository::root()).arg("--to").arg(to).arg("--program").arg(built.join("hoistway"));
    let playground = target.join("playground");
    if playground.join("index.html").is_file() {
        command.arg("--playground").arg(playground);
    }
    if options.browser {
        command.arg("--browser");
    }
    tools::run(&mut command)
}

/// Builds the site, and checks it in a browser, too.
pub fn check() -> Result<()> {
    run(&Options { to: None, browser: true })
}
