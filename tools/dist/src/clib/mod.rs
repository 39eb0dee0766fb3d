//! The C library: `libhoistway.a`, `libhoistway.so`, the header and the file for pkg-config.
//!
//! Both libraries consist of the object that `cargo xtask proof` examines
//! (`tools/workspace/src/object.rs`), so neither can panic, and neither needs more than the
//! functions of the C library that copy and compare memory. Symbols beyond the functions of the
//! header are local. `abi.rs` describes the ABI in crates/capi/abi.txt and compares it; `header.rs`
//! reads the header.

mod abi;
mod header;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use hoistway_workspace::cargo::Workspace;
use hoistway_workspace::{object, programs};

use header::Header;

/// The number in the soname. Raise it, and set the minor version of the release to a new one, when
/// `cargo xtask clib --write-abi` reports an incompatible change of an ABI that was released.
const ABI: u32 = 0;

/// The header, from the root of the repository.
const HEADER: &str = "crates/capi/include/hoistway.h";

/// The programs that the build starts, each with its Debian package.
const PROGRAMS: &[(&str, &str)] = &[("cc", "gcc"), ("ar", "binutils"), ("nm", "binutils"), ("objcopy", "binutils")];

/// Options of the C library.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The prefix that receives include/hoistway.h, the libraries in lib, and
    /// lib/pkgconfig/hoistway.pc [default: clib in the target directory]
    #[arg(long, value_name = "DIR", conflicts_with = "write_abi")]
    to: Option<PathBuf>,
    /// The directory of the libraries below the prefix, such as lib64
    #[arg(long, value_name = "DIR", default_value = "lib", conflicts_with = "write_abi")]
    libdir: String,
    /// Write crates/capi/abi.txt, the description of the ABI, from the header
    #[arg(long)]
    write_abi: bool,
    /// Write it in spite of incompatible changes: the soname was in no release yet
    #[arg(long, requires = "write_abi")]
    unreleased: bool,
}

/// Builds the library, or writes the description of its ABI.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    programs::require_all(PROGRAMS, false)?;
    if options.write_abi {
        let changes = abi::write(workspace, options.unreleased)?;
        print!("{changes}");
        return Ok(());
    }
    let prefix = options.to.clone().unwrap_or_else(|| workspace.target_directory.join("clib"));
    let places = Places { prefix, libraries: options.libdir.trim_matches('/').to_owned(), relocatable: true };
    for path in build(workspace, &places)? {
        println!("{}", path.display());
    }
    Ok(())
}

/// The name that programs linked with the shared library ask the dynamic linker for.
fn soname() -> String {
    format!("libhoistway.so.{ABI}")
}

/// Returns the name of the file of the shared library: the number of its ABI, and the version
/// without its first number.
fn file_name() -> String {
    format!("{}.{}.{}", soname(), env!("CARGO_PKG_VERSION_MINOR"), env!("CARGO_PKG_VERSION_PATCH"))
}

/// Where the files of the library are written.
#[derive(Clone, Debug)]
pub struct Places {
    /// The prefix.
    pub prefix: PathBuf,
    /// The directory of libraries below the prefix, such as `lib` or `lib/x86_64-linux-gnu`.
    pub libraries: String,
    /// True if the prefix may be moved: the file for pkg-config finds it from its own place. False
    /// for a package, whose prefix is `/usr` once it is installed.
    pub relocatable: bool,
}

/// Builds the libraries below a prefix, if the header has the ABI that is described. Returns the
/// files and links that it wrote.
pub fn build(workspace: &Workspace, places: &Places) -> Result<Vec<PathBuf>> {
    abi::check(workspace)?;
    let object = object::panic_free(workspace)?;
    let (include, lib) = (places.prefix.join("include"), places.prefix.join(&places.libraries));
    let package_config = lib.join("pkgconfig");
    for directory in [&include, &package_config] {
        fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    }
    let header = include.join("hoistway.h");
    write(&header, &fs::read(workspace.root.join(HEADER)).context(HEADER)?)?;
    let member = object.with_file_name("hoistway.o");
    hide_symbols(&object, &member)?;
    let archive = lib.join("libhoistway.a");
    remove(&archive)?;
    // D: no times and owners, so that the same object gives the same archive.
    programs::run(Command::new("ar").arg("rcsD").arg(&archive).arg(&member))?;
    let shared = lib.join(file_name());
    link_shared(&member, &shared)?;
    let links = [lib.join(soname()), lib.join("libhoistway.so")];
    for (link, target) in links.iter().zip([file_name(), soname()]) {
        remove(link)?;
        symlink(&target, link).with_context(|| format!("cannot make the link {}", link.display()))?;
    }
    let description = package_config.join("hoistway.pc");
    write(&description, pkg_config(places).as_bytes())?;
    check_exports(workspace, &archive, &["--extern-only"])?;
    check_exports(workspace, &shared, &["--dynamic"])?;
    let [soname, development] = links;
    Ok(vec![header, archive, shared, soname, development, description])
}

/// Copies an object without its local symbols. Global symbols that are not of the interface, such
/// as the panic handler's, would meet those of another static library written in Rust.
fn hide_symbols(object: &Path, to: &Path) -> Result<()> {
    let options = ["--strip-unneeded", "--wildcard", "--keep-global-symbol=hoistway_*"];
    programs::run(Command::new("objcopy").args(options).arg(object).arg(to))
}

/// Links the shared library, which exports the functions of the interface only.
fn link_shared(object: &Path, to: &Path) -> Result<()> {
    let script = object.with_file_name("exports.map");
    write(&script, b"{ global: hoistway_*; local: *; };\n")?;
    // A program that runs with the old file keeps it.
    remove(to)?;
    programs::run(
        Command::new("cc")
            .args(["-shared", "-Wl,-z,defs", "-Wl,-z,relro", "-Wl,-z,now", "-Wl,--as-needed", "-Wl,--build-id=sha1"])
            .arg(format!("-Wl,-soname,{}", soname()))
            .arg(format!("-Wl,--version-script={}", script.display()))
            .arg(object)
            .arg("-o")
            .arg(to),
    )
}

/// Returns the file for pkg-config.
fn pkg_config(places: &Places) -> String {
    let libraries = &places.libraries;
    // pkg-config leaves out the directories in which compilers search anyway, if it is given them.
    let prefix = match places.relocatable {
        true => format!("${{pcfiledir}}{}", "/..".repeat(libraries.split('/').count() + 1)),
        false => "/usr".to_owned(),
    };
    format!(
        "prefix={prefix}
includedir=${{prefix}}/include
libdir=${{prefix}}/{libraries}

Name: hoistway
Description: Linux I/O schedulers and the request queue in which they run
Version: {}
Cflags: -I${{includedir}}
Libs: -L${{libdir}} -lhoistway
",
        env!("CARGO_PKG_VERSION")
    )
}

/// Checks that a library exports the functions that the header declares, and nothing else.
fn check_exports(workspace: &Workspace, library: &Path, options: &[&str]) -> Result<()> {
    let declared: BTreeSet<String> = header(workspace)?.functions.into_iter().map(|function| function.name).collect();
    let exported = exported(library, options)?;
    let list = |names: Vec<&String>| names.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let missing = list(declared.difference(&exported).collect());
    if !missing.is_empty() {
        bail!("{} does not export what {HEADER} declares: {missing}", library.display());
    }
    let beyond = list(exported.difference(&declared).collect());
    if !beyond.is_empty() {
        bail!("{} exports what {HEADER} does not declare: {beyond}", library.display());
    }
    Ok(())
}

/// Lists the symbols that a library exports.
fn exported(library: &Path, options: &[&str]) -> Result<BTreeSet<String>> {
    let listed = programs::output(Command::new("nm").arg("--defined-only").args(options).arg(library))?;
    // Lines of three words: address, type, name. Those of archives also have lines with members.
    let names = listed.lines().filter_map(|line| line.split_whitespace().nth(2));
    Ok(names.map(str::to_owned).collect())
}

/// Reads the header.
fn header(workspace: &Workspace) -> Result<Header> {
    Header::read(&fs::read_to_string(workspace.root.join(HEADER)).context(HEADER)?).context(HEADER)
}

fn write(path: &Path, contents: &[u8]) -> Result<()> {
    fs::write(path, contents).with_context(|| format!("cannot write {}", path.display()))
}

/// Removes a file or link if it exists.
fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
