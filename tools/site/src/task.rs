//! The task `site` of `cargo xtask`: what the site is made from, and where.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use hoistway_workspace::needs::{self, Need};
use hoistway_workspace::{cargo, programs, repository, web};

use crate::{browser, check, site};

/// Options of the site.
#[derive(clap::Args, Debug, Default)]
pub struct Options {
    /// The directory of the site [default: site in the target directory]; it is created, and
    /// emptied if it holds an older site
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Also open typical pages and all live figures in Chromium, and check them there. The quickly
    /// built playground of the tests does if there is no other
    #[arg(long)]
    browser: bool,
}

/// Builds the site and checks its links. The playground becomes a part of it if it is built.
pub fn run(options: &Options) -> Result<()> {
    let playgrounds: &[&str] = if options.browser { &["playground", "playground-quick"] } else { &["playground"] };
    let target = cargo::target_directory()?;
    let playground = playgrounds.iter().map(|name| target.join(name)).find(|folder| is_built(folder));
    let to = options.to.clone().unwrap_or_else(|| target.join("site"));
    build(&to, playground.as_deref(), options.browser)?;
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

fn is_built(playground: &Path) -> bool {
    playground.join("index.html").is_file() && playground.join("hoistway.wasm").is_file()
}

fn build(to: &Path, playground: Option<&Path>, in_browser: bool) -> Result<()> {
    let root = repository::root();
    let pages = site::build(root, to, &cargo::hoistway()?, playground)?;
    println!("wrote {pages} pages to {}", to.display());
    let findings = check::findings(to)?;
    if !findings.is_empty() {
        bail!("the site has {} faults:\n{}", findings.len(), findings.join("\n"));
    }
    if in_browser {
        let axe = root.join("web/node_modules/axe-core/axe.min.js");
        println!("{}", browser::check(to, axe.is_file().then_some(axe.as_path()))?);
    }
    Ok(())
}

/// Runs the live figures of a built site in Chromium.
fn check_figures(site: &Path) -> Result<()> {
    needs::provide(&[Need::NpmPackages(web::PLAYGROUND)], false)?;
    programs::run(
        web::program(web::PLAYGROUND, "npm").args(["run", "--silent", "site"]).env("SITE_DIR", site.canonicalize()?),
    )
}
