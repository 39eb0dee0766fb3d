//! The picture in the README of the page of a trace: the program draws a recorded trace, and
//! Chromium takes a picture of it.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::repository;
use crate::tools;

const TRACE: &str = "crates/trace/testdata/blktrace/vda-bfq.blktrace.*.xz";
const PICTURE: &str = "docs/trace-view.png";
/// The part that is shown: a tenth of a second in which readers and writers share the disk, and one
/// request.
const SHOWN: &str = "?theme=light#t=0.68-0.8&request=0.480";
const SIZE: &str = "1240,1480";

/// Writes the picture.
pub fn write() -> Result<()> {
    let browser = ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(tools::find);
    let Some(browser) = browser else {
        bail!("{PICTURE}: chromium is not in PATH; Debian has it in the package chromium")
    };
    let folder = tools::target_directory()?.join("trace-view");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let page = folder.join("page.html");
    tools::run(
        Command::new(super::hoistway()?)
            .args(["trace", "view"])
            .arg(repository::root().join(TRACE))
            .args(["--title", "Six processes on a virtual disk under bfq", "-o"])
            .arg(&page),
    )?;
    let picture = repository::root().join(PICTURE);
    tools::run(
        Command::new(browser)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"])
            .args(["--virtual-time-budget=20000", &format!("--window-size={SIZE}")])
            .arg(format!("--user-data-dir={}", folder.join("profile").display()))
            .arg(format!("--screenshot={}", picture.display()))
            .arg(format!("file://{}{SHOWN}", page.display()))
            .stderr(Stdio::null()),
    )?;
    println!("wrote {PICTURE}");
    Ok(())
}
