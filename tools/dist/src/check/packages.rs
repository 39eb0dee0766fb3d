//! Checks of the packages that docs/install.md does not show.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use hoistway_workspace::programs;

use crate::binaries::Machine;
use crate::source::Source;
use crate::{image, materials, program, tree};

/// A check: it is given the directory of the packages and the architectures.
type Check = fn(&Source, &Path, &[Machine]) -> Result<()>;

/// All checks.
pub(super) const ALL: [(&str, Check); 5] = [
    ("checksums", checksums),
    ("lintian", lintian),
    ("materials", materials),
    ("image", image_serves),
    ("no-io-uring", without_io_uring),
];

/// The validator of bills of materials, from PyPI.
const VALIDATOR: &str = "cyclonedx-python-lib[json-validation]==11.6.0";

/// Compares the files with their checksums.
pub(super) fn checksums(_: &Source, directory: &Path, _: &[Machine]) -> Result<()> {
    programs::run(Command::new("sha256sum").args(["--quiet", "--check", "SHA256SUMS"]).current_dir(directory))
}

/// Lets lintian examine the Debian packages. Every warning that stands has an override with its
/// reason in the package.
fn lintian(_: &Source, directory: &Path, _: &[Machine]) -> Result<()> {
    programs::require_all(&[("lintian", "lintian")], true)?;
    let files = tree::files_below(directory)?;
    let packages: Vec<PathBuf> =
        files.into_iter().filter(|file| file.extension().is_some_and(|end| end == "deb")).collect();
    if packages.is_empty() {
        bail!("there is no Debian package in {}", directory.display());
    }
    let mut lintian = Command::new("lintian");
    let output =
        lintian.args(["--allow-root", "--fail-on", "error,warning"]).args(packages).current_dir(directory).output()?;
    if output.status.success() { Ok(()) } else { bail!("{}", String::from_utf8_lossy(&output.stdout)) }
}

/// Validates the bills of materials by the schema of CycloneDX, and compares them with the list
/// that the program carries.
fn materials(source: &Source, directory: &Path, machines: &[Machine]) -> Result<()> {
    let venv = source.workspace.target_directory.join("packages-validator");
    let python = venv.join("bin/python");
    if !venv.join("complete").exists() {
        programs::run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        programs::run(Command::new(&python).args(["-m", "pip", "install", "--quiet", VALIDATOR]))?;
        tree::write(&venv.join("complete"), VALIDATOR, 0o644)?;
    }
    const SCRIPT: &str = "import sys\n\
        from cyclonedx.schema import SchemaVersion\n\
        from cyclonedx.validation.json import JsonStrictValidator\n\
        found = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read())\n\
        sys.exit(str(found) if found else 0)\n";
    for machine in machines {
        let file = directory.join(materials::file_name(*machine));
        programs::run(Command::new(&python).args(["-c", SCRIPT]).arg(&file))?;
        let bill = String::from_utf8(tree::read(&file)?)?;
        let carried = carried_list(directory, *machine)?;
        for library in &carried {
            if !bill.contains(&format!("\"pkg:cargo/{library}\"")) {
                bail!("{} does not name {library}, which is in the program", file.display());
            }
        }
        for library in ["musl", "rust-std"] {
            if !bill.contains(&format!("\"pkg:generic/{library}@")) {
                bail!("{} does not name {library}", file.display());
            }
        }
        if carried.len() < 50 {
            bail!("the program for {} carries a list of {} libraries only", machine.name(), carried.len());
        }
    }
    Ok(())
}

/// The libraries that the program names in its section `.dep-v0`, as `NAME@VERSION`.
fn carried_list(directory: &Path, machine: Machine) -> Result<Vec<String>> {
    let scratch = tempfile::tempdir()?;
    let program = unpacked(directory, machine, scratch.path())?;
    let section = scratch.path().join("section");
    let mut objcopy = Command::new("objcopy");
    objcopy.arg(format!("--dump-section=.dep-v0={}", section.display())).arg(&program).arg("/dev/null");
    // objcopy of one machine cannot read programs of another.
    if !objcopy.status().is_ok_and(|status| status.success()) {
        let other = format!("{}-linux-gnu-objcopy", machine.name());
        let mut objcopy = Command::new(other);
        objcopy.arg(format!("--dump-section=.dep-v0={}", section.display())).arg(&program).arg("/dev/null");
        programs::run(&mut objcopy).context("the program has no list of its libraries")?;
    }
    let packed = tree::read(&section)?;
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::ZlibDecoder::new(packed.as_slice()), &mut text)?;
    let list: serde_json::Value = serde_json::from_str(&text)?;
    let libraries = list["packages"].as_array().into_iter().flatten();
    // Build scripts are not in the program.
    let libraries = libraries.filter(|library| library["kind"] != "build");
    let named = libraries.filter_map(|library| Some((library["name"].as_str()?, library["version"].as_str()?)));
    Ok(named.map(|(name, version)| format!("{name}@{}", version.replace('+', "%2B"))).collect())
}

/// Extracts the program of a tarball.
fn unpacked(directory: &Path, machine: Machine, to: &Path) -> Result<PathBuf> {
    let name = program::tarball_name(machine);
    let tarball = directory.join(format!("{name}.tar.gz"));
    programs::run(Command::new("tar").arg("-xzf").arg(&tarball).arg("-C").arg(to).arg(format!("{name}/hoistway")))?;
    Ok(to.join(name).join("hoistway"))
}

/// Starts what the image starts, with nothing but the image's files, and reads the size of its
/// export as a client.
fn image_serves(_: &Source, directory: &Path, _: &[Machine]) -> Result<()> {
    programs::require_all(&[("nbdinfo", "libnbd-bin")], true)?;
    let root = tempfile::tempdir()?;
    let entrypoint = image::extract(&directory.join(image::file_name(Machine::native()?)), root.path())?;
    let (program, arguments) = entrypoint.split_first().context("the image starts no program")?;
    std::fs::create_dir_all(root.path().join("run"))?;
    const SERVE: &str = "root=$1; shift; chroot \"$root\" \"$@\" --socket /run/nbd.sock > \"$root/log\" 2>&1 & server=$!\n\
        for i in $(seq 100); do [ -S \"$root/run/nbd.sock\" ] && break; sleep 0.1; done\n\
        nbdinfo --size \"nbd+unix:///disk?socket=$root/run/nbd.sock\"; status=$?\n\
        kill $server; wait $server; [ $status = 0 ] || cat \"$root/log\"; exit $status";
    let mut serve = Command::new("sh");
    serve.args(["-c", SERVE, "sh"]).arg(root.path()).arg(program).args(arguments);
    let printed = programs::output(serve.args(["--export", "disk=mem:64M"]))?;
    if printed.trim() == "67108864" { Ok(()) } else { bail!("nbdinfo prints {printed}") }
}

/// Runs the server of another architecture in an emulator, whose system calls have no io_uring: it
/// has to serve by threads.
fn without_io_uring(_: &Source, directory: &Path, machines: &[Machine]) -> Result<()> {
    let Some(machine) = machines.iter().find(|machine| Machine::native().is_ok_and(|native| native != **machine))
    else {
        println!("SKIPPED: no package of another architecture was built");
        return Ok(());
    };
    let emulator = format!("qemu-{}-static", machine.name());
    programs::require_all(&[(&emulator, "qemu-user-static"), ("nbdinfo", "libnbd-bin")], true)?;
    let scratch = tempfile::tempdir()?;
    let program = unpacked(directory, *machine, scratch.path())?;
    let mut serve = Command::new(&emulator);
    serve.arg(&program).args(["serve", "--export", "disk=mem:64M", "--socket", "h.sock", "--run"]);
    serve.arg("nbdinfo --size 'nbd+unix:///disk?socket=h.sock'").current_dir(scratch.path());
    let output = serve.output().context("the emulator cannot start")?;
    let (printed, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !printed.contains("67108864") || !log.contains("io_uring") {
        bail!("the server without io_uring prints\n{printed}{log}");
    }
    Ok(())
}
