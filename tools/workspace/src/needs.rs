//! What the checks need of the machine, and how each of these is installed.
//!
//! A step of the checks (`tools/xtask/src/checks`) names its needs. With `--install` it installs
//! those that are missing; without it the step is skipped, and prints the commands that install
//! them. What is installed below the repository, such as npm packages, changes nothing of the
//! machine: a step always installs that.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{cargo, programs, repository, web};

/// Something that a step needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A program in [`programs::PROGRAMS`], the table with its Debian package.
    Program(&'static str),
    /// A directory, and the Debian package that has it.
    Directory(&'static str, &'static str),
    /// The part of Python that makes environments.
    PythonEnvironments,
    /// A component of the Rust toolchain: its name, and a program that it has.
    Component(&'static str, &'static str),
    /// The standard library of a target of the Rust compiler.
    Target(&'static str),
    /// A subcommand of cargo, from crates.io.
    CargoTool(&'static str),
    /// The npm packages of a directory of the repository.
    NpmPackages(&'static str),
}

/// What the tests of the Python package need, beside the packages of their environment.
pub const PYTHON: &[Need] = &[Need::Program("python3"), Need::PythonEnvironments];

/// What builds of packages need.
pub const PACKAGES: &[Need] =
    &[Need::Program("cc"), Need::Program("python3"), Need::PythonEnvironments, Need::CargoTool("cargo-auditable")];

/// The target of the playground.
pub const PLAYGROUND_TARGET: &str = "wasm32-unknown-unknown";
/// What a build of the playground needs.
pub const PLAYGROUND: &[Need] =
    &[Need::Program("node"), Need::Program("npm"), Need::Target(PLAYGROUND_TARGET), Need::NpmPackages(web::PLAYGROUND)];
/// What tests of pages in a browser need.
pub const BROWSER: &[Need] = &[
    Need::Program("node"),
    Need::Program("npm"),
    Need::Target(PLAYGROUND_TARGET),
    Need::NpmPackages(web::PLAYGROUND),
    Need::Program("chromium"),
];

/// The targets of the core's assembly for x86-64 and arm64.
pub const ASSEMBLY_TARGETS: [&str; 2] = ["x86_64-unknown-none", "aarch64-unknown-none-softfloat"];
/// What the core's assembly needs.
pub const ASSEMBLY: &[Need] = &[Need::Target(ASSEMBLY_TARGETS[0]), Need::Target(ASSEMBLY_TARGETS[1])];
/// What the build of the kernel module and its boot need.
pub const KERNEL: &[Need] = &[
    Need::Program("cc"),
    Need::Program("gcc-12"),
    Need::Program("make"),
    Need::Program("pahole"),
    Need::Program("depmod"),
    Need::Program("zstd"),
    Need::Program("qemu-system-x86_64"),
    Need::Target("x86_64-unknown-linux-musl"),
];

/// Checks that nothing of the needs is missing, or installs what is. Without `install` the error
/// has the commands that do.
pub fn provide(needs: &[Need], install: bool) -> Result<()> {
    let missing: Vec<Need> = needs.iter().copied().filter(|need| !need.is_met()).collect();
    let (local, foreign): (Vec<Need>, Vec<Need>) = missing.into_iter().partition(|need| need.is_local());
    if !install && !foreign.is_empty() {
        bail!("{}", commands(&foreign)?);
    }
    let packages = packages(&foreign)?;
    if !packages.is_empty() {
        programs::install(&packages)?;
    }
    // Programs come first: the others are installed by some of them.
    for need in foreign.iter().chain(&local) {
        need.install().with_context(|| format!("{} cannot be installed", need.name()))?;
    }
    Ok(())
}

/// The missing needs, and the commands that install them.
fn commands(missing: &[Need]) -> Result<String> {
    let names: Vec<&str> = missing.iter().map(Need::name).collect();
    let packages = packages(missing)?;
    let debian = (!packages.is_empty()).then(|| programs::install_command(&packages));
    let commands: Vec<String> = debian.into_iter().chain(missing.iter().filter_map(Need::command)).collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    Ok(format!("{} {verb} missing: {}", names.join(", "), commands.join(" && ")))
}

/// The Debian packages of the needs that come from one, each once.
fn packages(needs: &[Need]) -> Result<Vec<&'static str>> {
    let packages: Result<Vec<_>> = needs.iter().filter_map(|need| need.package().transpose()).collect();
    let mut packages = packages?;
    packages.sort_unstable();
    packages.dedup();
    Ok(packages)
}

impl Need {
    /// The name in messages.
    fn name(&self) -> &'static str {
        match self {
            Need::Program(name) | Need::Component(name, _) | Need::Target(name) | Need::CargoTool(name) => name,
            Need::Directory(_, package) => package,
            Need::PythonEnvironments => "Python's venv",
            Need::NpmPackages(_) => "npm packages",
        }
    }

    /// Returns true if it is installed below the repository.
    fn is_local(&self) -> bool {
        matches!(self, Need::NpmPackages(_))
    }

    /// Returns true if nothing has to be installed.
    fn is_met(&self) -> bool {
        match self {
            Need::Program(name) => programs::find(name).is_some(),
            Need::Directory(path, _) => Path::new(path).is_dir(),
            Need::PythonEnvironments => succeeds(Command::new("python3").args(["-c", "import ensurepip"])),
            // The proxies of rustup are on the path even without the component.
            Need::Component(_, program) => succeeds(Command::new(program).arg("--version")),
            Need::Target(name) => has_target(name),
            Need::CargoTool(name) => cargo::find_tool(name).is_some(),
            Need::NpmPackages(directory) => has_npm_packages(&repository::root().join(directory)),
        }
    }

    /// The Debian package, if it comes from one.
    fn package(&self) -> Result<Option<&'static str>> {
        match self {
            Need::Program(name) => programs::package_of(name).map(Some),
            Need::Directory(_, package) => Ok(Some(package)),
            Need::PythonEnvironments => Ok(Some("python3-venv")),
            _ => Ok(None),
        }
    }

    /// The program that installs it and its arguments, unless it comes from a Debian package.
    fn installer(&self) -> Option<(&'static str, Vec<&'static str>)> {
        match self {
            Need::Program(_) | Need::Directory(..) | Need::PythonEnvironments => None,
            Need::Component(name, _) => Some(("rustup", vec!["component", "add", name])),
            Need::Target(name) => Some(("rustup", vec!["target", "add", name])),
            // Without optimisation it is there in a third of the time.
            Need::CargoTool(name) => Some(("cargo", vec!["install", "--quiet", "--locked", "--debug", name])),
            Need::NpmPackages(_) => Some(("npm", vec!["ci", "--silent", "--no-audit", "--no-fund"])),
        }
    }

    /// The command that a person types to install it, unless it comes from a Debian package.
    fn command(&self) -> Option<String> {
        self.installer().map(|(program, arguments)| format!("{program} {}", arguments.join(" ")))
    }

    /// Installs it, unless it comes from a Debian package.
    fn install(&self) -> Result<()> {
        let Some((program, arguments)) = self.installer() else { return Ok(()) };
        let directory = match self {
            Need::NpmPackages(directory) => directory,
            _ => "",
        };
        println!("installing {}", self.name());
        programs::run(Command::new(program).args(arguments).current_dir(repository::root().join(directory)))
    }
}

/// Returns true if the compiler of the workspace has the standard library of a target.
fn has_target(target: &str) -> bool {
    let mut print = Command::new("rustc");
    print.args(["--print", "target-libdir", "--target", target]).current_dir(repository::root());
    print.output().is_ok_and(|output| {
        output.status.success() && Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir()
    })
}

/// Returns true if a directory has the npm packages of its lock file.
fn has_npm_packages(directory: &Path) -> bool {
    let changed = |file: &str| fs::metadata(directory.join(file)).and_then(|found| found.modified()).ok();
    match (changed("node_modules/.package-lock.json"), changed("package-lock.json")) {
        (Some(installed), Some(wanted)) => installed >= wanted,
        _ => false,
    }
}

/// Returns true if a program starts and exits with 0. Its output is not shown.
fn succeeds(command: &mut Command) -> bool {
    command.current_dir(repository::root()).output().is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_the_commands_that_install_it() {
        let needs = [Need::Target("msp430-none-elf"), Need::CargoTool("cargo-no-such-tool")];
        let error = provide(&needs, false).expect_err("both are missing").to_string();
        assert_eq!(
            error,
            "msp430-none-elf, cargo-no-such-tool are missing: rustup target add msp430-none-elf && \
             cargo install --quiet --locked --debug cargo-no-such-tool"
        );
    }

    #[test]
    fn debian_packages_are_installed_by_one_command() {
        let missing = [Need::Program("node"), Need::PythonEnvironments, Need::Target("wasm32-unknown-unknown")];
        let expected = "node, Python's venv, wasm32-unknown-unknown are missing: apt-get install \
                        --no-install-recommends nodejs python3-venv && rustup target add wasm32-unknown-unknown";
        assert_eq!(commands(&missing).expect("the table has node"), expected);
        assert!(commands(&[Need::Program("no-such-program")]).is_err());
    }

    #[test]
    fn the_target_of_this_program_is_not_missing() {
        let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        assert!(has_target(&host) && !has_target("msp430-none-elf"));
    }
}
