//! Arbitrary text as a configuration: errors name their positions, and a valid configuration is the
//! same when it is read again.
#![no_main]

use std::io;
use std::path::{Path, PathBuf};

use hoistway_config::{ConfigError, Draft, Environment};

/// A machine on which every path is a file of 1 GiB that cannot be read.
struct Nowhere;

impl Environment for Nowhere {
    fn read(&self, _: &Path) -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn bytes(&self, _: &Path) -> io::Result<u64> {
        Ok(1 << 30)
    }

    fn identity(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }

    fn socket_directory(&self) -> PathBuf {
        PathBuf::from("/run")
    }
}

libfuzzer_sys::fuzz_target!(|text: &str| {
    let check = || Draft::from_toml(text, "fuzz.toml").check(&Nowhere);
    match (check(), check()) {
        (Ok(one), Ok(two)) => {
            assert!(one.config.changes(&two.config).is_empty(), "two readings of one configuration differ")
        }
        (Err(ConfigError::Wrong { problems }), Err(_)) => {
            assert!(!problems.is_empty());
            assert!(problems.iter().all(|problem| problem.to_string().len() > problem.location.to_string().len()));
        }
        (one, _) => panic!("{one:?}"),
    }
});
