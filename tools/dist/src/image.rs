//! The container image: an archive in the layout of the Open Container Initiative with one layer,
//! which has the static program and nothing else.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::binaries::Machine;
use crate::source::{Source, VERSION};
use crate::{archive, tree};

/// The largest archive, in bytes: what a registry stores and a client downloads.
const SIZE_MAX: usize = 20_000_000;

/// The name of the image, without its version.
pub(crate) const NAME: &str = "localhost/hoistway";
/// What the image starts: a server with the exports that the arguments name.
pub(crate) const ENTRYPOINT: [&str; 2] = ["/usr/bin/hoistway", "serve"];
/// The arguments that replace those of `docker run`, if it has none.
pub(crate) const ARGUMENTS: [&str; 1] = ["--help"];

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// The name of the archive.
pub(crate) fn file_name(machine: Machine) -> String {
    format!("hoistway-{VERSION}-{}.oci.tar", machine.debian())
}

/// Writes the archive.
pub(crate) fn write(source: &Source, machine: Machine, program: &Path, licences: &str, to: &Path) -> Result<PathBuf> {
    let root = source.scratch(&format!("image-{}", machine.name()));
    tree::renew(&root)?;
    tree::copy(program, &root.join("usr/bin/hoistway"), 0o755)?;
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        tree::copy(&source.root().join(name), &root.join("usr/share/doc/hoistway").join(name), 0o644)?;
    }
    tree::write(&root.join("usr/share/doc/hoistway/LICENCES-OF-LIBRARIES.txt"), licences, 0o644)?;
    let archive = pack(&archive::tar(&root, "", source.time)?, machine, &source.commit, source.time)?;
    if archive.len() > SIZE_MAX {
        bail!("the image has {} bytes, which is more than {SIZE_MAX}", archive.len());
    }
    let file = to.join(file_name(machine));
    tree::write(&file, archive, 0o644)?;
    Ok(file)
}

/// Packs a layer with its configuration, manifest and index.
fn pack(layer: &[u8], machine: Machine, commit: &str, time: u64) -> Result<Vec<u8>> {
    let mut entries = vec![("oci-layout".to_owned(), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec())];
    let mut blob = |bytes: Vec<u8>, kind: &str| -> Value {
        let digest = archive::sha256(&bytes);
        let size = bytes.len();
        entries.push((format!("blobs/sha256/{digest}"), bytes));
        json!({ "mediaType": kind, "digest": format!("sha256:{digest}"), "size": size })
    };
    let compressed = blob(archive::gzip(layer)?, "application/vnd.oci.image.layer.v1.tar+gzip");
    let config = json!({
        "architecture": machine.debian(),
        "os": "linux",
        "config": {
            "Entrypoint": ENTRYPOINT,
            "Cmd": ARGUMENTS,
            "WorkingDir": "/",
            "ExposedPorts": { "10809/tcp": {} },
            "Labels": {
                "org.opencontainers.image.title": "hoistway",
                "org.opencontainers.image.version": VERSION,
                "org.opencontainers.image.revision": commit.split(' ').next(),
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", archive::sha256(layer))] },
    });
    let config = blob(serde_json::to_vec(&config)?, "application/vnd.oci.image.config.v1+json");
    let manifest = json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [compressed] });
    let mut manifest = blob(serde_json::to_vec(&manifest)?, MANIFEST);
    manifest["annotations"] = json!({ "org.opencontainers.image.ref.name": format!("{NAME}:{VERSION}") });
    manifest["platform"] = json!({ "architecture": machine.debian(), "os": "linux" });
    let index = json!({ "schemaVersion": 2, "manifests": [manifest] });
    entries.push(("index.json".to_owned(), serde_json::to_vec(&index)?));
    entries.sort();
    archive::tar_of(&entries, time)
}

/// Reads an archive as a container engine does: follows the digests from the index to the layer,
/// checks each, and extracts the layer. Returns the command that the image starts.
pub(crate) fn extract(file: &Path, to: &Path) -> Result<Vec<String>> {
    let layout = tempfile::tempdir()?;
    tar::Archive::new(tree::read(file)?.as_slice()).unpack(layout.path())?;
    let read = |descriptor: &Value| -> Result<Vec<u8>> {
        let digest = descriptor["digest"].as_str().and_then(|digest| digest.strip_prefix("sha256:"));
        let Some(digest) = digest else { bail!("{descriptor} has no digest") };
        let bytes = tree::read(&layout.path().join("blobs/sha256").join(digest))?;
        if archive::sha256(&bytes) != digest || descriptor["size"] != bytes.len() {
            bail!("{descriptor} does not describe its {} bytes", bytes.len());
        }
        Ok(bytes)
    };
    let json = |bytes: &[u8]| -> Result<Value> { Ok(serde_json::from_slice(bytes)?) };
    let index = json(&tree::read(&layout.path().join("index.json"))?)?;
    let manifest = json(&read(&index["manifests"][0])?)?;
    let config = json(&read(&manifest["config"])?)?;
    let layer = read(&manifest["layers"][0])?;
    let mut plain = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(layer.as_slice()), &mut plain)?;
    if config["rootfs"]["diff_ids"][0] != format!("sha256:{}", archive::sha256(&plain)) {
        bail!("the configuration of {} has the digest of another layer", file.display());
    }
    tar::Archive::new(plain.as_slice()).unpack(to)?;
    let words = config["config"]["Entrypoint"].as_array().into_iter().flatten();
    Ok(words.filter_map(|word| word.as_str().map(str::to_owned)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_read_back() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().join("root");
        tree::write(&root.join("usr/bin/hoistway"), "program", 0o755).expect("a file");
        let layer = archive::tar(&root, "", 9).expect("a layer");
        let packed = pack(&layer, Machine::X86_64, "abc 2026-11-27", 9).expect("an image");
        let (file, to) = (directory.path().join("image.tar"), directory.path().join("extracted"));
        tree::write(&file, &packed, 0o644).expect("a file");
        assert_eq!(extract(&file, &to).expect("a valid image"), ENTRYPOINT);
        assert_eq!(tree::read(&to.join("usr/bin/hoistway")).expect("the program"), b"program");
        // A changed byte of the layer is found.
        let mut changed = packed;
        let at = changed.windows(2).position(|bytes| bytes == [0x1f, 0x8b]).expect("the compressed layer");
        changed[at + 9] ^= 1;
        tree::write(&file, &changed, 0o644).expect("a file");
        let error = extract(&file, &directory.path().join("other")).expect_err("a wrong digest").to_string();
        assert!(error.contains("does not describe"), "{error}");
    }
}
