//! Packages of hoistway: Debian packages, tarballs with a static program, wheels, a container
//! image, their bills of materials and checksums; and the check that each installs on a clean
//! system.
//!
//! Names of directories and the time of the build are kept out of the packages; `twice.rs` compares
//! the bytes of two builds.
//!
//! Where to change what:
//! - what cargo and maturin are called with: `binaries.rs`, `wheel.rs`
//! - the files beside the program: `program.rs`
//! - the Debian packages: `debian.rs`, which fills in the templates of `packaging/debian`
//! - archives: `archive.rs`; the container image: `image.rs`
//! - the bill of materials: `materials.rs`; the libraries of the compiler in it: `runtimes.rs`
//! - the C library: `clib/`; the published crates, their packages and release notes: `crates/`
//! - the walks of docs/install.md: `check/`

#![forbid(unsafe_code)]

mod archive;
pub mod binaries;
mod check;
pub mod clib;
pub mod crates;
mod debian;
mod image;
mod materials;
pub mod module_sources;
mod program;
mod runtimes;
mod source;
mod tree;
mod twice;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use hoistway_workspace::{needs, programs};

use binaries::{Machine, Quality};
pub use check::{Options as CheckOptions, check};
pub use debian::kernel_module;
pub use source::Source;

/// Options of `cargo xtask dist`.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    /// The directory of the packages [default: dist in the repository]
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Compile with the profile `release`, which is quicker, and not with `packaged`
    #[arg(long)]
    pub quick: bool,
    /// Build everything twice, in copies of the repository in two directories, and compare all
    /// bytes
    #[arg(long)]
    pub twice: bool,
    /// What to build; may be repeated [default: everything]
    #[arg(long, value_enum, value_name = "PART")]
    pub only: Vec<Part>,
    /// An architecture; may be repeated [default: all]
    #[arg(long, value_enum, value_name = "MACHINE")]
    pub machine: Vec<Machine>,
    /// Install what is missing: programs (as root on Debian), subcommands of cargo
    #[arg(long)]
    pub install: bool,
}

/// A kind of package.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The Debian package of the program
    Deb,
    /// The tarball with the static program
    Tarball,
    /// The container image with the block server
    Image,
    /// The wheel for Python
    Wheel,
    /// The Debian packages of the C library
    Library,
    /// The Debian package of the kernel module
    Module,
}

impl Options {
    /// Returns true if a part is wanted.
    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    fn machines(&self) -> Vec<Machine> {
        if self.machine.is_empty() { Machine::ALL.to_vec() } else { self.machine.clone() }
    }

    fn quality(&self) -> Quality {
        if self.quick { Quality::Quick } else { Quality::Final }
    }
}

/// Builds the packages, and the second time too if that is asked for.
pub fn run(source: &Source, options: &Options) -> Result<()> {
    needs::provide(needs::PACKAGES, options.install)?;
    let to = options.to.clone().unwrap_or_else(|| source.root().join("dist"));
    if options.twice { twice::run(source, options, &to) } else { build(source, options, &to).map(drop) }
}

/// Builds the packages into a directory, which loses what it had. Returns the files.
fn build(source: &Source, options: &Options, to: &Path) -> Result<Vec<PathBuf>> {
    programs::require_all(&[("dpkg-deb", "dpkg"), ("md5sum", "coreutils"), ("git", "git")], false)?;
    let to = std::path::absolute(to)?;
    empty(&to)?;
    if source.is_changed()? {
        println!("note: the repository has changes that are in no commit; the packages name the commit below them");
    }
    let mut files = Vec::new();
    let mut add = |name: &str, begun: Instant, made: Vec<PathBuf>| {
        for file in &made {
            let size = fs::metadata(file).map_or(0, |data| data.len());
            let shown = file.file_name().unwrap_or_default().to_string_lossy();
            println!("{:>8.2} MB  {shown}", size as f64 / 1e6);
        }
        println!("-- {name}: {:.0} s", begun.elapsed().as_secs_f64());
        files.extend(made);
    };
    let with_program = [Part::Deb, Part::Tarball, Part::Image].into_iter().any(|part| options.wants(part));
    if with_program {
        let begun = Instant::now();
        let native = binaries::program(source, Machine::native()?, options.quality())?;
        let pages = program::pages(source, &native)?;
        for machine in options.machines() {
            let file = match machine == Machine::native()? {
                true => native.clone(),
                false => binaries::program(source, machine, options.quality())?,
            };
            let licences = materials::licences(source, materials::PROGRAM, machine)?;
            let mut made = Vec::new();
            if options.wants(Part::Deb) {
                made.push(debian::program(source, machine, &file, &pages, &licences, &to)?);
            }
            if options.wants(Part::Tarball) {
                made.push(program::tarball(source, machine, &file, &pages, &licences, &to)?);
            }
            if options.wants(Part::Image) {
                made.push(image::write(source, machine, &file, &licences, &to)?);
            }
            let bill = to.join(materials::file_name(machine));
            materials::write(source, materials::PROGRAM, machine, &bill)?;
            made.push(bill);
            add(&format!("program for {}", machine.name()), begun, made);
        }
    }
    if options.wants(Part::Library) {
        let begun = Instant::now();
        add("C library", begun, debian::library(source, &to)?);
    }
    if options.wants(Part::Module) {
        let begun = Instant::now();
        add("kernel module", begun, vec![kernel_module(source, &to)?]);
    }
    if options.wants(Part::Wheel) {
        let begun = Instant::now();
        let made = options.machines().into_iter().map(|machine| wheel::build(source, machine, options.quality(), &to));
        add("wheels", begun, made.collect::<Result<_>>()?);
    }
    files.sort();
    let sums = archive::sums(&files)?;
    tree::write(&to.join("SHA256SUMS"), sums, 0o644)?;
    Ok(files)
}

/// Makes a directory, or removes the packages in it. Refuses one that has other files.
fn empty(directory: &Path) -> Result<()> {
    const ENDS: [&str; 7] = [".deb", ".tar.gz", ".oci.tar", ".whl", ".cdx.json", "SHA256SUMS", ".tar"];
    fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !ENDS.iter().any(|end| name.ends_with(end)) {
            bail!("{} has the file {name}, which is no package: choose another directory", directory.display());
        }
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}
