//! The static program: cargo's build of `hoistway` for musl, with the list of its dependencies in a
//! section of the file (`cargo auditable`).
//!
//! C code is compiled by Zig, which has the headers of musl for every architecture. rust-lld links
//! with the musl that comes with Rust, as a position-independent program.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use hoistway_workspace::programs;

use crate::source::Source;

/// Programs from PyPI that builds need, with their versions: Zig as a C compiler, the subcommand of
/// cargo that calls it, and those of wheels.
const TOOLS: [&str; 4] = ["cargo-zigbuild==0.24.1", "ziglang==0.17.1", WHEEL_TOOLS[0], WHEEL_TOOLS[1]];
/// Programs from PyPI that wheels of a compiled module need.
const WHEEL_TOOLS: [&str; 2] = ["maturin==1.16.0", "wheel==0.48.0"];

/// An architecture of packages.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// 64-bit x86
    #[value(name = "x86_64")]
    X86_64,
    /// 64-bit ARM
    #[value(name = "aarch64")]
    Aarch64,
}

impl Machine {
    /// All architectures.
    pub const ALL: [Machine; 2] = [Machine::X86_64, Machine::Aarch64];

    /// The architecture that this program runs on.
    pub fn native() -> Result<Machine> {
        let native = Machine::ALL.into_iter().find(|machine| machine.name() == std::env::consts::ARCH);
        native.with_context(|| format!("there are no packages for {}", std::env::consts::ARCH))
    }

    /// The name in tarballs and wheels.
    pub fn name(self) -> &'static str {
        match self {
            Machine::X86_64 => "x86_64",
            Machine::Aarch64 => "aarch64",
        }
    }

    /// The name in Debian and in container images.
    pub fn debian(self) -> &'static str {
        match self {
            Machine::X86_64 => "amd64",
            Machine::Aarch64 => "arm64",
        }
    }

    /// The target of the static program.
    pub(crate) fn target(self) -> String {
        format!("{}-unknown-linux-musl", self.name())
    }
}

/// How much time the compiler has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quality {
    /// The profile `release`.
    Quick,
    /// The profile `packaged`.
    Final,
}

impl Quality {
    /// The name of the profile.
    pub(crate) fn profile(self) -> &'static str {
        match self {
            Quality::Quick => "release",
            Quality::Final => "packaged",
        }
    }
}

/// Installs the programs of builds from PyPI, and returns their directory.
pub(crate) fn tools(source: &Source) -> Result<PathBuf> {
    install(source, "packages-tools", &TOOLS)
}

/// Installs the programs that wheels of a compiled module need from PyPI, without the large C
/// compiler, and returns their directory.
pub(crate) fn wheel_tools(source: &Source) -> Result<PathBuf> {
    install(source, "packages-wheel-tools", &WHEEL_TOOLS)
}

/// Installs programs from PyPI in an environment of their own, unless they are there, and returns
/// its directory of programs.
fn install(source: &Source, name: &str, packages: &[&str]) -> Result<PathBuf> {
    let venv = source.workspace.target_directory.join(name);
    let (bin, stamp, wanted) = (venv.join("bin"), venv.join("tools"), packages.join(" "));
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(bin);
    }
    programs::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))
        .context("Debian's package python3-venv")?;
    let mut pip = Command::new(bin.join("pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]).args(packages);
    programs::run(&mut pip).with_context(|| format!("cannot install {wanted} from PyPI"))?;
    std::fs::write(&stamp, wanted)?;
    Ok(bin)
}

/// Builds the static program for an architecture and returns its file.
pub fn program(source: &Source, machine: Machine, quality: Quality) -> Result<PathBuf> {
    let target = machine.target();
    programs::run(Command::new("rustup").args(["target", "add", &target]).stderr(std::process::Stdio::null()))
        .with_context(|| format!("rustup cannot fetch the target {target}"))?;
    let mut cargo = cargo(source)?;
    cargo.args(["auditable", "zigbuild", "--quiet", "--locked", "--package", "hoistway", "--bin", "hoistway"]);
    cargo.args(["--profile", quality.profile(), "--target", &target]);
    let variable = target.to_uppercase().replace('-', "_");
    cargo.env(format!("CARGO_TARGET_{variable}_LINKER"), "rust-lld");
    programs::run(&mut cargo)?;
    let file = source.workspace.target_directory.join(&target).join(quality.profile()).join("hoistway");
    require_static(&file)?;
    Ok(file)
}

/// Cargo with the environment that makes builds independent of directories and clocks.
pub(crate) fn cargo(source: &Source) -> Result<Command> {
    if programs::find("cargo-auditable").is_none() && !cargo_home().join("bin/cargo-auditable").is_file() {
        bail!("cargo-auditable is missing: cargo install --locked cargo-auditable");
    }
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(source.root());
    for (name, value) in environment(source)? {
        command.env(name, value);
    }
    Ok(command)
}

/// The environment of reproducible builds.
pub(crate) fn environment(source: &Source) -> Result<Vec<(&'static str, String)>> {
    let mut rustc = Command::new("rustc");
    let sysroot = programs::output(rustc.args(["--print", "sysroot"]).current_dir(source.root()))?;
    let root = source.root().canonicalize()?;
    let target = std::path::absolute(&source.workspace.target_directory)?;
    // The last of the prefixes that fit is taken.
    let prefixes: [(&Path, &str); 4] =
        [(&cargo_home(), "/cargo"), (Path::new(sysroot.trim()), "/rust"), (&root, "/hoistway"), (&target, "/target")];
    let separator = '\u{1f}';
    let flags = prefixes.map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()));
    let c_flags = prefixes.map(|(from, to)| format!("-ffile-prefix-map={}={to}", from.display()));
    let path = std::env::var("PATH").unwrap_or_default();
    // cargo-auditable calls the compiler in a way that this wrapper does not understand.
    let wrapper = std::env::var("RUSTC_WRAPPER").unwrap_or_default();
    let wrapper = if wrapper.ends_with("sccache") { String::new() } else { wrapper };
    Ok(vec![
        ("RUSTC_WRAPPER", wrapper),
        ("CARGO_ENCODED_RUSTFLAGS", flags.join(&separator.to_string())),
        ("CFLAGS", c_flags.join(" ")),
        ("CARGO_TARGET_DIR", target.display().to_string()),
        ("CARGO_INCREMENTAL", "0".to_owned()),
        ("HOISTWAY_COMMIT", source.commit.clone()),
        ("SOURCE_DATE_EPOCH", source.time.to_string()),
        ("CARGO_PROFILE_RELEASE_STRIP", "symbols".to_owned()),
        ("ZERO_AR_DATE", "1".to_owned()),
        ("LC_ALL", "C".to_owned()),
        ("PATH", format!("{}:{path}", tools(source)?.display())),
    ])
}

/// The directory of cargo.
pub(crate) fn cargo_home() -> PathBuf {
    tool_home("CARGO_HOME", ".cargo")
}

/// The directory of a tool: that of an environment variable, or one in the user's home directory.
pub(crate) fn tool_home(variable: &str, name: &str) -> PathBuf {
    let home = std::env::var_os(variable).map(PathBuf::from);
    home.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(name))
}

/// Fails if a program needs an interpreter or libraries.
fn require_static(file: &Path) -> Result<()> {
    let headers = programs::output(Command::new("readelf").args(["--program-headers", "--dynamic"]).arg(file))?;
    if headers.contains("INTERP") || headers.contains("(NEEDED)") {
        bail!("{} is not static:\n{headers}", file.display());
    }
    Ok(())
}
