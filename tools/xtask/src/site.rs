//! The task of the site. The crate `hoistway-site` builds and checks it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::needs::{self, Need};
use crate::{repository, tools, web};

/// Options of the site.
#[derive(clap::Args, Debug, Default)]
pub struct Options {
    /// The directory of the site [default: site in the target directory]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Also open typical pages and all live figures in Chromium, and check them there
    #[arg(long)]
    browser: bool,
}

/// Builds the site and checks its links. The playground becomes a part of it if it is built.
pub fn run(options: &Options) -> Result<()> {
    build(options, first_built(&["playground"])?.as_deref())
}

/// Builds the site, and checks it in a browser, too. The quickly built playground of the tests does
/// if there is no other.
pub fn check() -> Result<()> {
    build(&Options { to: None, browser: true }, first_built(&["playground", "playground-quick"])?.as_deref())
}

/// The first of some folders below the target directory that has a playground.
fn first_built(names: &[&str]) -> Result<Option<PathBuf>> {
    let target = tools::target_directory()?;
    Ok(names.iter().map(|name| target.join(name)).find(|folder| is_built(folder)))
}

fn is_built(playground: &Path) -> bool {
    playground.join("index.html").is_file() && playground.join("hoistway.wasm").is_file()
}

fn build(options: &Options, playground: Option<&Path>) -> Result<()> {
    let target = tools::target_directory()?;
    let to = options.to.clone().unwrap_or_else(|| target.join("site"));
    let built = tools::built(&["--bin", "hoistway-site", "--bin", "hoistway"])?;
    let mut command = Command::new(built.join("hoistway-site"));
    command.arg("--root").arg(repository::root()).arg("--to").arg(&to).arg("--program").arg(built.join("hoistway"));
    if let Some(playground) = playground {
        command.arg("--playground").arg(playground);
    }
    if options.browser {
        command.arg("--browser");
    }
    tools::run(&mut command)?;
    match playground {
        Some(_) if options.browser => check_figures(&to),
        Some(_) => Ok(()),
        None => {
            let skipped = if options.browser { "SKIPPED: " } else { "" };
            println!(
                "{skipped}the site has no playground and no live figures; `cargo xtask playground build` builds them"
            );
            Ok(())
        }
    }
}

/// Runs the live figures of a built site in Chromium.
fn check_figures(site: &Path) -> Result<()> {
    needs::provide(&[Need::NpmPackages(web::PLAYGROUND)], false)?;
    tools::run(
        web::program(web::PLAYGROUND, "npm").args(["run", "--silent", "site"]).env("SITE_DIR", site.canonicalize()?),
    )
}
