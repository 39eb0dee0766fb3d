//! The playground: its module of WebAssembly, its page, and their tests (docs/playground.md).

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use flate2::{Compression, write::GzEncoder};
use hoistway_workspace::{cargo, needs, programs, repository, web};

/// The maximum number of bytes of the module, and of the module compressed by gzip -9.
const BYTES_MAX: u64 = 1_500_000;
const GZIP_BYTES_MAX: u64 = 520_000;

/// The time from the start of the page to the first result that fails the test of the small module.
/// The quick one has no limit: its time depends on the other work of the machine.
const FIRST_MS_MAX: u64 = 15_000;

/// The stack of the small module. The runs of the tests use up to 60 KB. Addresses above it have
/// three bytes in the code; above the usual stack of 1 MiB they have four.
const STACK_BYTES: u32 = 256 << 10;

/// The file of the module in the folder of the page.
const MODULE: &str = "hoistway.wasm";
/// What to do with the playground; without a subcommand it is built.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    #[command(subcommand)]
    action: Option<Action>,
    /// Install what is missing: programs (as root on Debian), the target of rustup
    #[arg(long, global = true)]
    install: bool,
}

#[derive(clap::Subcommand, Clone, Debug)]
enum Action {
    /// Build the page: static files for any web server
    Build {
        /// The folder of the files [default: playground in the target directory]
        #[arg(long, value_name = "DIR")]
        to: Option<PathBuf>,
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

impl Module {
    /// The profile, and the folder of its output.
    fn profile(self) -> (&'static str, &'static str) {
        match self {
            Module::Small => ("wasm", "wasm"),
            Module::Quick => ("dev", "debug"),
        }
    }

    /// The folder of the built page.
    fn page(self) -> Result<PathBuf> {
        let name = match self {
            Module::Small => "playground",
            Module::Quick => "playground-quick",
        };
        Ok(cargo::target_directory()?.join(name))
    }
}

/// Builds the playground, or tests it.
pub fn run(options: &Options) -> Result<()> {
    let needs = if let Some(Action::Test { .. }) = options.action { needs::BROWSER } else { needs::PLAYGROUND };
    needs::provide(needs, options.install)?;
    match &options.action {
        None | Some(Action::Build { to: None }) => build(&Module::Small.page()?, Module::Small),
        Some(Action::Build { to: Some(to) }) => build(to, Module::Small),
        Some(Action::Test { small: true }) => test_module(Module::Small),
        Some(Action::Test { small: false }) => test_module(Module::Quick),
    }
}

/// Builds a module and the page, and tests both.
fn test_module(module: Module) -> Result<()> {
    let (target, folder) = (cargo::target_directory()?, module.page()?);
    build(&folder, module)?;
    npm(&["run", "--silent", "types"])?;
    unit_tests(&target.join("playground-test"))?;
    let file = target.join("playground-answers");
    let answers = cargo::built(&["--example", "answers"])?.join("examples/answers");
    fs::write(&file, programs::output(&mut Command::new(answers))?)?;
    programs::run(web::program(web::PLAYGROUND, "node").arg("test/equality.mjs").arg(folder.join(MODULE)).arg(&file))?;
    let mut browser = web::program(web::PLAYGROUND, "npm");
    browser.args(["run", "--silent", "browser"]).env("PLAYGROUND_DIR", &folder);
    if module == Module::Small {
        browser.env("PLAYGROUND_FIRST_MS_MAX", FIRST_MS_MAX.to_string());
    }
    programs::run(&mut browser)
}

/// Bundles the unit tests of the page into a folder and runs them.
fn unit_tests(folder: &Path) -> Result<()> {
    fs::remove_dir_all(folder).or_else(|error| if folder.exists() { Err(error) } else { Ok(()) })?;
    programs::run(web::program(web::PLAYGROUND, "node").args(["build.mjs", "--tests"]).arg(folder))?;
    let files = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let files = files.collect::<std::io::Result<Vec<_>>>()?;
    // By their names: versions of node differ in what they do with a folder.
    programs::run(web::program(web::PLAYGROUND, "node").arg("--test").args(files))
}

/// Builds the module and the page into a folder. A module that is too large is not put there.
fn build(to: &Path, module: Module) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    let to = to.canonicalize()?;
    let (file, unchecked) = (to.join(MODULE), to.join(format!("{MODULE}.unchecked")));
    // The page changes with the module: it must not meet an older one.
    remove(&file)?;
    let built = compile(module)?;
    fs::write(to.join("style.css"), style()?)?;
    programs::run(web::program(web::PLAYGROUND, "node").arg("build.mjs").arg(&to))?;
    match module {
        Module::Small => {
            programs::run(web::program(web::PLAYGROUND, "node").args(["optimise.mjs"]).arg(&built).arg(&unchecked))?;
            place_if_small(&unchecked, &file)
        }
        Module::Quick => {
            fs::copy(&built, &file).with_context(|| format!("cannot copy {}", built.display()))?;
            Ok(())
        }
    }
}

/// Compiles the module and returns its file.
fn compile(module: Module) -> Result<PathBuf> {
    let (profile, folder) = module.profile();
    // Not by `cargo build`, which would make the library for Rust as well: with that, cargo leaves
    // out the optimisation across crates.
    let mut command = cargo::command();
    command.args(["rustc", "--quiet", "-p", "hoistway-playground", "--lib", "--crate-type", "cdylib"]);
    command.args(["--profile", profile, "--target", needs::PLAYGROUND_TARGET]);
    if module == Module::Small {
        command.args(["--", "-C", &format!("link-arg=-zstack-size={STACK_BYTES}")]);
    }
    programs::run(&mut command)?;
    Ok(cargo::target_directory()?.join(needs::PLAYGROUND_TARGET).join(folder).join("hoistway_playground.wasm"))
}

/// Moves a module to its place, unless it takes long to load.
fn place_if_small(unchecked: &Path, file: &Path) -> Result<()> {
    let checked = check_size(unchecked);
    if checked.is_err() {
        remove(unchecked)?;
        return checked;
    }
    fs::rename(unchecked, file).with_context(|| format!("cannot make {}", file.display()))
}

/// Removes a file if it exists.
fn remove(file: &Path) -> Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", file.display()))
        }
        _ => Ok(()),
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
    programs::run(web::program(web::PLAYGROUND, "npm").args(arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_is_too_large_does_not_get_to_its_place() {
        let directory = std::env::temp_dir().join(format!("hoistway-playground-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        let (unchecked, file) = (directory.join("unchecked"), directory.join(MODULE));
        for (bytes, fits) in [(BYTES_MAX + 1, false), (BYTES_MAX, true)] {
            fs::write(&unchecked, vec![0; bytes as usize]).expect("a file");
            assert_eq!(place_if_small(&unchecked, &file).is_ok(), fits);
            assert_eq!((file.exists(), unchecked.exists()), (fits, false));
        }
        fs::remove_dir_all(directory).expect("removed");
    }
}
