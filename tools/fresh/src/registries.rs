//! The access of this machine to packages, which a fresh machine gets too: mirrors, proxies and
//! certificates, but no caches. Other settings stay outside.

use std::path::{Path, PathBuf};

/// The beginnings of variables of cargo, rustup, pip and npm with registries, and how they are
/// reached.
const PREFIXES: [&str; 9] = [
    "CARGO_REGISTRIES_",
    "CARGO_REGISTRY_",
    "CARGO_SOURCE_",
    "CARGO_HTTP_",
    "CARGO_NET_",
    "RUSTUP_DIST_",
    "RUSTUP_UPDATE_",
    "PIP_",
    "NPM_CONFIG_",
];
/// Variables with proxies and certificates, in upper case.
const NAMES: [&str; 10] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
];
/// Ends of variables that name directories of this machine.
const LOCAL_ENDS: [&str; 4] = ["_CACHE", "_CACHE_DIR", "_FIND_LINKS", "_PREFIX"];

/// Settings of the machine, at the same place there. The certificates contain those that an
/// administrator has added.
const OF_SYSTEM: [&str; 4] = ["/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf", "/etc/npmrc"];
/// Settings of the user, from the home directory.
const OF_USER: [&str; 3] = [".npmrc", ".config/pip/pip.conf", ".pip/pip.conf"];
/// Settings of cargo, from its directory.
const OF_CARGO: [&str; 2] = ["config.toml", "config"];

/// Returns true if a fresh machine gets a variable of the environment.
pub(crate) fn is_carried(variable: &str) -> bool {
    let name = variable.to_uppercase();
    let is_known = NAMES.contains(&name.as_str()) || PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    is_known && !LOCAL_ENDS.iter().any(|end| name.ends_with(end))
}

/// The files of settings that a fresh machine gets if they exist: the place here, and the one in
/// its root directory, whose user is root.
pub(crate) fn files(home: &Path, cargo_home: &Path) -> Vec<(PathBuf, PathBuf)> {
    let of_system = OF_SYSTEM.map(|path| (PathBuf::from(path), PathBuf::from(path.trim_start_matches('/'))));
    let of_user = OF_USER.map(|path| (home.join(path), Path::new("root").join(path)));
    let of_cargo = OF_CARGO.map(|path| (cargo_home.join(path), Path::new("root/.cargo").join(path)));
    of_system.into_iter().chain(of_user).chain(of_cargo).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_proxies_and_certificates_are_carried_and_caches_are_not() {
        for name in ["PIP_INDEX_URL", "npm_config_registry", "https_proxy", "CARGO_NET_RETRY", "SSL_CERT_FILE"] {
            assert!(is_carried(name), "{name}");
        }
        for name in ["PIP_CACHE_DIR", "PIP_FIND_LINKS", "npm_config_cache", "CARGO_HOME", "CARGO_TARGET_DIR", "PATH"] {
            assert!(!is_carried(name), "{name}");
        }
    }

    #[test]
    fn settings_of_a_user_become_those_of_root() {
        let files = files(Path::new("/users/ada"), Path::new("/opt/cargo"));
        let to = |from: &str| files.iter().find(|(place, _)| place == Path::new(from)).map(|(_, to)| to.as_path());
        assert_eq!(to("/users/ada/.npmrc"), Some(Path::new("root/.npmrc")));
        assert_eq!(to("/opt/cargo/config.toml"), Some(Path::new("root/.cargo/config.toml")));
        assert_eq!(to("/etc/pip.conf"), Some(Path::new("etc/pip.conf")));
    }
}
