//! The pictures of pages in the README and the guides: the program writes each page, and Chromium
//! takes a picture of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use hoistway_workspace::{cargo, programs, repository};

/// A page and the part of it that its picture shows.
struct Picture {
    file: &'static str,
    /// The command that writes the page to the path that follows.
    command: &'static [&'static str],
    /// The fragment of the address that shows the part, empty for the beginning of the page.
    shown: &'static str,
}

/// A theme and a window of a page, and what follows the stem of the file of its picture. The site
/// shows the picture that suits the reader's theme and window.
struct Variant {
    suffix: &'static str,
    theme: &'static str,
    /// Width and height of the window in px.
    size: &'static str,
}

const VARIANTS: [Variant; 4] = [
    Variant { suffix: "", theme: "light", size: "1240,1480" },
    Variant { suffix: "-dark", theme: "dark", size: "1240,1480" },
    Variant { suffix: "-narrow", theme: "light", size: "500,900" },
    Variant { suffix: "-narrow-dark", theme: "dark", size: "500,900" },
];

const PICTURES: [Picture; 2] = [
    Picture {
        file: "docs/trace-view.png",
        command: &[
            "trace",
            "view",
            "crates/trace/testdata/blktrace/vda-bfq.blktrace.*.xz",
            "--title",
            "Six processes on a virtual disk under bfq",
            "-o",
        ],
        // A tenth of a second in which readers and writers share the disk, and one request.
        shown: "#t=0.68-0.8&request=0.480",
    },
    Picture {
        file: "docs/competing-readers.png",
        command: &[
            "compare",
            "examples/competing-readers.fio",
            "--drive",
            "sata-7200-2006",
            "--elevators",
            "noop,deadline,anticipatory,cfq-v3,cfq,bfq",
            "--report",
        ],
        shown: "",
    },
];

/// Writes the pictures.
pub fn write() -> Result<()> {
    let browser = ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(programs::find);
    let Some(browser) = browser else {
        bail!("pictures of pages: chromium is not in PATH; Debian has it in the package chromium")
    };
    let folder = cargo::target_directory()?.join("pictures");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let program = cargo::hoistway()?;
    PICTURES.iter().try_for_each(|picture| picture.write(&program, &browser, &folder))
}

impl Picture {
    fn write(&self, program: &Path, browser: &PathBuf, folder: &Path) -> Result<()> {
        let page = folder.join("page.html");
        programs::run(
            Command::new(program).args(self.command).arg(&page).current_dir(repository::root()).stdout(Stdio::null()),
        )?;
        for variant in &VARIANTS {
            let file = self.file.replace(".png", &format!("{}.png", variant.suffix));
            let picture = repository::root().join(&file);
            programs::run(
                Command::new(browser)
                    .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"])
                    .args(["--virtual-time-budget=20000", &format!("--window-size={}", variant.size)])
                    .arg(format!("--user-data-dir={}", folder.join("profile").display()))
                    .arg(format!("--screenshot={}", picture.display()))
                    .arg(format!("file://{}?theme={}{}", page.display(), variant.theme, self.shown))
                    .stderr(Stdio::null()),
            )?;
            println!("wrote {file}");
        }
        Ok(())
    }
}
