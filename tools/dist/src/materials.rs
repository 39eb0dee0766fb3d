//! What a binary of the workspace is made of: the bill of materials in CycloneDX's format, and the
//! licences of the libraries. Both come from cargo's metadata, and from the table of the compiler's
//! libraries. The binary is named by its package.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use hoistway_workspace::programs;
use serde_json::{Value, json};

use crate::binaries::Machine;
use crate::source::{Source, VERSION};
use crate::{archive, runtimes, tree};

/// The package of the program.
pub(crate) const PROGRAM: &str = "hoistway";
/// The package of the extension module for Python.
pub(crate) const PYTHON_MODULE: &str = "hoistway-python";

/// Returns true for the program: the only binary that is static.
fn is_static(binary: &str) -> bool {
    binary == PROGRAM
}

/// A package that is in the binary.
#[derive(Clone, Debug)]
struct Library {
    name: String,
    version: String,
    /// The SPDX expression of its licence.
    licence: Option<String>,
    description: Option<String>,
    repository: Option<String>,
    /// The directory of its sources.
    directory: PathBuf,
    /// True for packages of a registry, false for those of the workspace.
    is_foreign: bool,
    /// The identifiers of the packages that it needs, sorted.
    needs: BTreeSet<String>,
}

impl Library {
    /// The package URL.
    fn purl(&self) -> String {
        // Of the characters in versions of packages only the plus is not allowed.
        format!("pkg:cargo/{}@{}", self.name, self.version.replace('+', "%2B"))
    }
}

/// Lists the packages in a binary for an architecture by cargo's identifiers.
fn libraries(source: &Source, binary: &str, machine: Machine) -> Result<BTreeMap<String, Library>> {
    let mut metadata = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    metadata.args(["metadata", "--locked", "--format-version", "1", "--filter-platform", &machine.target()]);
    let printed = programs::output(metadata.current_dir(source.root()))?;
    let metadata: Value = serde_json::from_str(&printed).context("the output of cargo metadata")?;
    let of_id = |list: &Value| -> BTreeMap<String, Value> {
        let items = list.as_array().into_iter().flatten();
        items.filter_map(|item| Some((item["id"].as_str()?.to_owned(), item.clone()))).collect()
    };
    let (packages, nodes) = (of_id(&metadata["packages"]), of_id(&metadata["resolve"]["nodes"]));
    let root = packages.iter().find(|(_, package)| package["name"] == binary);
    let mut open = vec![root.with_context(|| format!("cargo metadata does not list {binary}"))?.0.clone()];
    let mut found = BTreeMap::new();
    while let Some(id) = open.pop() {
        if found.contains_key(&id) {
            continue;
        }
        let package = packages.get(&id).with_context(|| format!("cargo metadata does not describe {id}"))?;
        let dependencies = nodes.get(&id).and_then(|node| node["deps"].as_array());
        // Build scripts and tests are not in the binary.
        let is_normal = |dependency: &&Value| {
            dependency["dep_kinds"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
        };
        let needs = dependencies.into_iter().flatten().filter(is_normal);
        let needs: BTreeSet<String> = needs.filter_map(|dependency| Some(dependency["pkg"].as_str()?.into())).collect();
        open.extend(needs.iter().cloned());
        let text = |key: &str| package[key].as_str().map(str::to_owned);
        let manifest = PathBuf::from(text("manifest_path").context("a package without a manifest")?);
        let library = Library {
            name: text("name").context("a package without a name")?,
            version: text("version").context("a package without a version")?,
            licence: text("license"),
            description: text("description"),
            repository: text("repository"),
            directory: manifest.parent().unwrap_or(Path::new("/")).to_owned(),
            is_foreign: !package["source"].is_null(),
            needs,
        };
        found.insert(id, library);
    }
    Ok(found)
}

/// The file name of the program's bill of materials.
pub(crate) fn file_name(machine: Machine) -> String {
    format!("hoistway-{VERSION}-{}.cdx.json", machine.name())
}

/// Writes the bill of materials of a binary.
pub(crate) fn write(source: &Source, binary: &str, machine: Machine, file: &Path) -> Result<()> {
    let libraries = libraries(source, binary, machine)?;
    let sums = checksums(&source.text("Cargo.lock")?);
    let mut document = bill(binary, &libraries, &sums, &runtimes::components(source, is_static(binary), machine)?);
    // An identifier from the contents: the same bill has the same number.
    let digits = archive::sha256(format!("{document}{}", source.commit).as_bytes());
    let serial = format!(
        "urn:uuid:{}-{}-4{}-8{}-{}",
        &digits[..8],
        &digits[8..12],
        &digits[13..16],
        &digits[17..20],
        &digits[20..32]
    );
    document["serialNumber"] = json!(serial);
    tree::write(file, serde_json::to_string_pretty(&document)? + "\n", 0o644)
}

/// The bill of materials: cargo's packages in the order of names, then the libraries of the
/// compiler, which the binary needs directly.
fn bill(
    binary: &str,
    libraries: &BTreeMap<String, Library>,
    sums: &BTreeMap<(String, String), String>,
    runtimes: &[Value],
) -> Value {
    let mut sorted: Vec<&Library> = libraries.values().collect();
    sorted.sort_by_key(|library| library.purl());
    let component = |library: &&Library| {
        let mut component = json!({
            "type": if library.name == binary { "application" } else { "library" },
            "bom-ref": library.purl(),
            "name": library.name,
            "version": library.version,
            "purl": library.purl(),
        });
        if let Some(licence) = &library.licence {
            // Old packages write a slash where SPDX has OR.
            component["licenses"] = json!([{ "expression": licence.replace(" / ", "/").replace('/', " OR ") }]);
        }
        if let Some(description) = &library.description {
            component["description"] = json!(description.split_whitespace().collect::<Vec<_>>().join(" "));
        }
        if let Some(sum) = sums.get(&(library.name.clone(), library.version.clone())) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
        }
        if let Some(repository) = library.repository.as_ref().filter(|_| library.is_foreign) {
            component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
        }
        component
    };
    let (root, others): (Vec<&Library>, Vec<&Library>) = sorted.iter().partition(|library| library.name == binary);
    let dependencies = sorted.iter().map(|library| {
        let mut needs: Vec<String> =
            library.needs.iter().filter_map(|id| libraries.get(id)).map(Library::purl).collect();
        needs.sort();
        if library.name == binary {
            needs.extend(runtimes.iter().filter_map(|runtime| runtime["purl"].as_str().map(str::to_owned)));
        }
        json!({ "ref": library.purl(), "dependsOn": needs })
    });
    let leaves = runtimes.iter().map(|runtime| json!({ "ref": runtime["bom-ref"], "dependsOn": [] }));
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": root.first().map(component) },
        "components": others.iter().map(component).chain(runtimes.iter().cloned()).collect::<Vec<_>>(),
        "dependencies": dependencies.chain(leaves).collect::<Vec<_>>(),
    })
}

/// The checksums of packages by name and version, from the lock file.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let value = |package: &str, key: &str| -> Option<String> {
        let line = package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
        line.and_then(|rest| rest.strip_suffix('"')).map(str::to_owned)
    };
    let packages = lock.split("[[package]]").skip(1);
    let entry =
        |package: &str| Some(((value(package, "name")?, value(package, "version")?), value(package, "checksum")?));
    packages.filter_map(entry).collect()
}

/// The texts of the licences of all libraries of others in a binary, and of those that the compiler
/// adds. A text that several have is there once.
pub(crate) fn licences(source: &Source, binary: &str, machine: Machine) -> Result<String> {
    let libraries = libraries(source, binary, machine)?;
    let mut users: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut head = format!("Libraries in {binary}, and their licences.\n\n");
    let mut foreign: Vec<&Library> = libraries.values().filter(|library| library.is_foreign).collect();
    foreign.sort_by_key(|library| library.purl());
    for library in foreign {
        let licence = library.licence.as_deref().unwrap_or("see the text below");
        let name = format!("{} {}", library.name, library.version);
        // Writing to a string cannot fail.
        let _ = writeln!(head, "{name}: {licence}");
        for text in licence_texts(&library.directory)? {
            users.entry(text).or_default().insert(name.clone());
        }
    }
    for runtime in runtimes::of(is_static(binary)) {
        let _ = writeln!(head, "{}: {}", runtime.title, runtime.licences);
        users.entry(source.text(runtime.text)?).or_default().insert(runtime.title.to_owned());
    }
    let mut texts: Vec<(BTreeSet<String>, String)> = users.into_iter().map(|(text, users)| (users, text)).collect();
    texts.sort();
    for (users, text) in texts {
        let users = users.into_iter().collect::<Vec<_>>().join(", ");
        let _ = write!(head, "\n{}\n{users}\n\n{}\n", "=".repeat(80), text.trim_end());
    }
    Ok(head)
}

/// The licences, copyright notices and notices in the directory of a library.
fn licence_texts(directory: &Path) -> Result<Vec<String>> {
    const BEGINNINGS: [&str; 4] = ["license", "licence", "copying", "notice"];
    let mut texts = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let is_text = BEGINNINGS.iter().any(|beginning| name.starts_with(beginning)) && path.is_file();
        if is_text {
            let text = String::from_utf8_lossy(&tree::read(&path)?).replace('\r', "");
            texts.push(text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n"));
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_file_has_checksums() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"registry\"\nchecksum = \"12ab\"\n\
                    \n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n";
        let sums = checksums(lock);
        assert_eq!(sums.get(&("a".into(), "1.0.0".into())).map(String::as_str), Some("12ab"));
        assert_eq!(sums.len(), 1, "a package of the workspace has none");
    }

    #[test]
    fn a_bill_names_every_library_and_what_it_needs() {
        let library = |name: &str, needs: &[&str]| Library {
            name: name.to_owned(),
            version: "1.0.0+2".to_owned(),
            licence: Some("MIT/Apache-2.0".to_owned()),
            description: None,
            repository: None,
            directory: PathBuf::new(),
            is_foreign: true,
            needs: needs.iter().map(|name| (*name).to_owned()).collect(),
        };
        let all = [library(PROGRAM, &["b", "a"]), library("b", &["a"]), library("a", &[])];
        let all = all.into_iter().map(|library| (library.name.clone(), library)).collect();
        let sums = BTreeMap::from([(("a".into(), "1.0.0+2".into()), "00ff".into())]);
        let bill = bill(PROGRAM, &all, &sums, &[runtimes::component(&runtimes::MUSL, "1.2.5")]);
        assert_eq!(bill["metadata"]["component"]["name"], PROGRAM);
        let names: Vec<&str> =
            bill["components"].as_array().expect("a list").iter().filter_map(|c| c["name"].as_str()).collect();
        assert_eq!(names, ["a", "b", "musl"]);
        let first = &bill["components"][0];
        assert_eq!(first["purl"], "pkg:cargo/a@1.0.0%2B2");
        assert_eq!(first["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(first["hashes"][0]["content"], "00ff");
        let needs = ["pkg:cargo/a@1.0.0%2B2", "pkg:cargo/b@1.0.0%2B2", "pkg:generic/musl@1.2.5"];
        assert_eq!(bill["dependencies"][2]["dependsOn"], json!(needs));
        assert_eq!(bill["dependencies"][3], json!({ "ref": "pkg:generic/musl@1.2.5", "dependsOn": [] }));
    }
}
