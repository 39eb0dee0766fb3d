//! Tests of parsing, checking and comparing configurations.

mod arguments;
mod bad;
mod changes;
mod good;
mod reading;
mod reservations;

use std::io;
use std::path::{Path, PathBuf};

use crate::{CheckedConfig, Config, Draft, Environment, Problem};

/// A host with three files and a block device.
pub(crate) struct TestEnvironment;

impl Environment for TestEnvironment {
    fn read(&self, path: &Path) -> io::Result<String> {
        match path.to_str() {
            Some("/etc/slow.toml") => Ok("name = \"slow\"\nwhat = \"test\"\nsource = \"test\"\n[null]\nservice_ns = 1000000\ndepth = 8\ncapacity_sectors = 2097152\n".into()),
            Some("/etc/broken.toml") => Ok("name = 7".into()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn bytes(&self, path: &Path) -> io::Result<u64> {
        match path.to_str() {
            Some("/srv/disk.img" | "/srv/./disk.img") => Ok(1 << 30),
            Some("/srv/other.img") => Ok(1 << 20),
            Some("/dev/sdb") => Ok(1 << 40),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn identity(&self, path: &Path) -> PathBuf {
        PathBuf::from(path.to_string_lossy().replace("/./", "/"))
    }

    fn socket_directory(&self) -> PathBuf {
        "/run/user/7".into()
    }
}

pub(crate) fn checked(text: &str) -> Result<CheckedConfig, Vec<String>> {
    problem_lines(Draft::from_toml(text, "/etc/hoistway.toml").check(&TestEnvironment))
}

pub(crate) fn problem_lines(result: Result<CheckedConfig, crate::ConfigError>) -> Result<CheckedConfig, Vec<String>> {
    result.map_err(|error| error.to_string().lines().map(str::to_owned).collect())
}

pub(crate) fn good(text: &str) -> Config {
    let checked = checked(text).unwrap_or_else(|problems| panic!("{text}\n{}", problems.join("\n")));
    assert_eq!(checked.warnings, [], "{text}");
    checked.config
}

pub(crate) fn warnings(text: &str) -> Vec<String> {
    let checked = checked(text).unwrap_or_else(|problems| panic!("{text}\n{}", problems.join("\n")));
    checked.warnings.iter().map(Problem::to_string).collect()
}
