//! The playground: its module of WebAssembly, its page, and their tests (docs/playground.md).

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use flate2::{Compression, write::GzEncoder};

use crate::tools::{self, cargo};
use crate::{repository, web};

/// The most bytes of the module, and of the module compressed by gzip -9.
const BYTES_MAX: u64 = 1_500_000;
const GZIP_BYTES_MAX: u64 = 500_000;

/// The time from the start of the page to the first result that fails the test of the small module.
/// The quick one has no limit: its time depends on the other work of the machine.
const FIRST_MS_MAX: u64 = 15_000;

/// The stack of the small module. The runs of the tests use up to 60 KB. Addresses behind it have
/// three bytes in the code; behind the usual stack of 1 MiB they have four.
const STACK_BYTES: u32 = 256 << 10;

/// The folder of the built page.
const BUILT: &str = "target/playground";

/// What to do with the playground; without a subcommand it is built.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(clap::Subcommand, Clone, Debug)]
enum Action {
    /// Build the page: static files for any web server
    Build {
        /// The folder of the files
        #[arg(long, value_name = "DIR", default_value = BUILT)]
        to: PathBuf,
    },
    /// Build the page and test it: types, units, equality of bytes, a browser
    Test {
        /// Test the small module of `build`, which takes minutes, not one that is quick to build
        #[arg(long)]
        small: bool,
    },
}

/// How a module is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Module {
    /// For readers: as small as possible, within the limits.
    Small,
    /// For tests: by the profile of all tests, with their checks of arithmetic.
    Quick,
}

/// Builds the playground, or tests it.
pub fn run(options: &Options) -> Result<()> {
    match &options.action {
        None => build(Path::new(BUILT), Module::Small),
        Some(Action::Build { to }) => build(to, Module::Small),
        Some(Action::Test { small: true }) => test_module(Module::Small),
        Some(Action::Test { small: false }) => test(),
    }
}

/// Builds the module quickly, and the page, and tests both.
pub fn test() -> Result<()> {
    test_module(Module::Quick)
}

fn test_module(module: Module) -> Result<()> {
    let folder = repository::root().join(match module {
        Module::Small => BUILT,
        Module::Quick => "target/playground-quick",
    });
    build(&folder, module)?;
    npm(&["run", "--silent", "types"])?;
    npm(&["run", "--silent", "unit"])?;
    let file = repository::root().join("target/playground-answers");
    let answers = tools::built(&["--example", "answers"])?.join("examples/answers");
    fs::write(&file, tools::output(&mut Command::new(answers))?)?;
    tools::run(
        web::program(web::PLAYGROUND, "node").arg("test/equality.mjs").arg(folder.join("hoistway.wasm")).arg(&file),
    )?;
    let mut browser = web::program(web::PLAYGROUND, "npm");
    browser.args(["run", "--silent", "browser"]).env("PLAYGROUND_DIR", &folder);
    if module == Module::Small {
        browser.env("PLAYGROUND_FIRST_MS_MAX", FIRST_MS_MAX.to_string());
    }
    tools::run(&mut browser)
}

/// Builds the module and the page into a folder.
fn build(to: &Path, module: Module) -> Result<()> {
    let to = repository::root().join(to);
    fs::create_dir_all(&to).with_context(|| format!("cannot create {}", to.display()))?;
    let (profile, folder) = match module {
        Module::Small => ("wasm", "wasm"),
        Module::Quick => ("dev", "debug"),
    };
    let target = ["--profile", profile, "--target", "wasm32-unknown-unknown"];
    // Not by `cargo build`, which would make the library for Rust as well: with that, cargo leaves
    // out the optimisation across crates.
    let mut command = cargo();
    command.args(["rustc", "--quiet", "-p", "hoistway-playground", "--lib", "--crate-type", "cdylib"]).args(target);
    if module == Module::Small {
        command.args(["--", "-C", &format!("link-arg=-zstack-size={STACK_BYTES}")]);
    }
    tools::run(&mut command)?;
    let built = repository::root().join("target/wasm32-unknown-unknown").join(folder).join("hoistway_playground.wasm");
    web::install_packages(web::PLAYGROUND)?;
    fs::write(to.join("style.css"), style()?)?;
    tools::run(web::program(web::PLAYGROUND, "npm").args(["run", "--silent", "build"]).env("PLAYGROUND_DIR", &to))?;
    let file = to.join("hoistway.wasm");
    match module {
        Module::Small => {
            tools::run(web::program(web::PLAYGROUND, "node").args(["optimise.mjs"]).arg(&built).arg(&file))?;
            check_size(&file)
        }
        Module::Quick => {
            fs::copy(&built, &file).with_context(|| format!("cannot copy {}", built.display()))?;
            Ok(())
        }
    }
}

/// Refuses a module that takes long to load.
fn check_size(module: &Path) -> Result<()> {
    let bytes = fs::read(module).with_context(|| format!("cannot read {}", module.display()))?;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&bytes)?;
    let (size, compressed) = (bytes.len() as u64, gzip.finish()?.len() as u64);
    println!("{}: {size} bytes, {compressed} compressed by gzip -9", module.display());
    ensure!(size <= BYTES_MAX, "the module has {size} bytes; {BYTES_MAX} is the most");
    ensure!(compressed <= GZIP_BYTES_MAX, "the module has {compressed} bytes compressed; {GZIP_BYTES_MAX} is the most");
    Ok(())
}

/// The style sheet of all pages, and that of the playground.
fn style() -> Result<String> {
    let own = fs::read_to_string(repository::root().join("web/src/style.css")).context("web/src/style.css")?;
    Ok(hoistway_report::style_sheet() + &own)
}

fn npm(arguments: &[&str]) -> Result<()> {
    tools::run(web::program(web::PLAYGROUND, "npm").args(arguments))
}
