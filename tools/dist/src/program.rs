//! The files that belong to the program: documents, manual pages, completions, units, examples,
//! dashboards and licences, and the tarball of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use hoistway_workspace::programs;

use crate::binaries::Machine;
use crate::source::{Source, VERSION};
use crate::{archive, tree};

/// The completions: the shell, and where Debian has the file.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/hoistway"),
    ("zsh", "usr/share/zsh/vendor-completions/_hoistway"),
    ("fish", "usr/share/fish/vendor_completions.d/hoistway.fish"),
];

/// Directories of example configurations and job files of the repository, and their names in
/// packages. Of a directory its configurations and job files are taken.
const EXAMPLES: [(&str, &str); 4] =
    [("examples", "jobs"), ("examples/serve", "serve"), ("examples/mount", "mount"), ("examples/advise", "advise")];

/// Files of the repository, and their places in the Debian package.
const FILES: [(&str, &str); 6] = [
    ("packaging/systemd/hoistway.service", "usr/lib/systemd/system/hoistway.service"),
    ("packaging/systemd/hoistway.socket", "usr/lib/systemd/system/hoistway.socket"),
    ("packaging/systemd/hoistway-mount@.service", "usr/lib/systemd/system/hoistway-mount@.service"),
    ("packaging/grafana/hoistway.json", "usr/share/hoistway/grafana/hoistway.json"),
    ("packaging/prometheus/hoistway.rules.yml", "usr/share/hoistway/prometheus/hoistway.rules.yml"),
    ("packaging/prometheus/prometheus.yml", "usr/share/hoistway/prometheus/prometheus.yml"),
];

/// What the program writes about itself: manual pages in `man`, and completions beside them.
#[derive(Clone, Debug)]
pub(crate) struct Pages(PathBuf);

/// Lets a program of this machine write its manual pages and completions.
pub(crate) fn pages(source: &Source, program: &Path) -> Result<Pages> {
    let directory = source.scratch("pages");
    tree::renew(&directory)?;
    let hoistway = || {
        let mut command = Command::new(program);
        // The pages are dated by the commit.
        command.env("SOURCE_DATE_EPOCH", source.time.to_string()).env("NO_COLOR", "1");
        command
    };
    programs::output(hoistway().arg("man").arg(directory.join("man")))?;
    for (shell, _) in COMPLETIONS {
        let script = programs::output(hoistway().args(["completions", shell]))?;
        tree::write(&directory.join(shell), script, 0o644)?;
    }
    Ok(Pages(directory))
}

impl Pages {
    /// The manual pages.
    fn manual(&self) -> Result<Vec<PathBuf>> {
        let files = tree::files_below(&self.0.join("man"))?;
        Ok(files.into_iter().map(|file| self.0.join("man").join(file)).collect())
    }
}

/// Puts the program and its files where Debian has them.
pub(crate) fn install(source: &Source, program: &Path, pages: &Pages, root: &Path) -> Result<()> {
    tree::copy(program, &root.join("usr/bin/hoistway"), 0o755)?;
    for page in pages.manual()? {
        let name = page.file_name().context("the name of a manual page")?.to_string_lossy().into_owned();
        let packed = archive::gzip(&tree::read(&page)?)?;
        tree::write(&root.join("usr/share/man/man1").join(format!("{name}.gz")), packed, 0o644)?;
    }
    for (shell, place) in COMPLETIONS {
        tree::copy(&pages.0.join(shell), &root.join(place), 0o644)?;
    }
    for (from, to) in FILES {
        tree::copy(&source.root().join(from), &root.join(to), 0o644)?;
    }
    documents(source, &root.join("usr/share/doc/hoistway/docs"))?;
    // Minimal systems install nothing below usr/share/doc.
    examples(source, &root.join("usr/share/hoistway/examples"))?;
    tree::link("../../hoistway/examples", &root.join("usr/share/doc/hoistway/examples"))
}

/// Copies the examples.
fn examples(source: &Source, to: &Path) -> Result<()> {
    for (from, name) in EXAMPLES {
        let directory = source.root().join(from);
        for entry in fs::read_dir(&directory).with_context(|| format!("cannot list {from}"))? {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "toml" || end == "fio") {
                tree::copy(&path, &to.join(name).join(path.file_name().context("a name")?), 0o644)?;
            }
        }
    }
    Ok(())
}

/// Copies the documents, which manual pages, messages and unit files name as in `docs/mount.md`.
fn documents(source: &Source, to: &Path) -> Result<()> {
    let directory = source.root().join("docs");
    for file in tree::files_below(&directory)? {
        if file.extension().is_some_and(|end| end == "md") {
            tree::copy(&directory.join(&file), &to.join(&file), 0o644)?;
        }
    }
    Ok(())
}

/// The name of the tarball without its ending, and of the directory in it.
pub(crate) fn tarball_name(machine: Machine) -> String {
    format!("hoistway-{VERSION}-{}-linux-musl", machine.name())
}

/// Writes the tarball: the program, README, licences, documents, manual pages, completions and the
/// files for systemd, Prometheus and Grafana.
pub(crate) fn tarball(
    source: &Source,
    machine: Machine,
    program: &Path,
    pages: &Pages,
    licences: &str,
    to: &Path,
) -> Result<PathBuf> {
    let name = tarball_name(machine);
    let root = source.scratch(&name);
    tree::renew(&root)?;
    tree::copy(program, &root.join("hoistway"), 0o755)?;
    for page in pages.manual()? {
        tree::copy(&page, &root.join("man").join(page.file_name().context("a name")?), 0o644)?;
    }
    for (shell, place) in COMPLETIONS {
        let file = Path::new(place).file_name().context("a name")?;
        tree::copy(&pages.0.join(shell), &root.join("completions").join(shell).join(file), 0o644)?;
    }
    for (from, place) in FILES {
        let parts: Vec<&str> = place.rsplitn(3, '/').collect();
        let directory = if from.starts_with("packaging/systemd") { "systemd" } else { parts[1] };
        tree::copy(&source.root().join(from), &root.join(directory).join(parts[0]), 0o644)?;
    }
    documents(source, &root.join("docs"))?;
    examples(source, &root.join("examples"))?;
    for file in ["LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md", "SECURITY.md"] {
        tree::copy(&source.root().join(file), &root.join(file), 0o644)?;
    }
    tree::write(&root.join("LICENCES-OF-LIBRARIES.txt"), licences, 0o644)?;
    tree::copy(&source.root().join("packaging/tarball/README.md"), &root.join("README.md"), 0o644)?;
    let file = to.join(format!("{name}.tar.gz"));
    let packed = archive::gzip_as(&archive::tar(&root, &name, source.time)?, source.packing)?;
    tree::write(&file, packed, 0o644)?;
    Ok(file)
}
