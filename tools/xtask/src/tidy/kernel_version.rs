//! The version of the kernel module, which three files state.

use hoistway_workspace::repository::File;

/// Finds a file of the kernel module that states another version than the workspace.
pub fn findings(file: &File, workspace: &str) -> Option<String> {
    let stated = match file.path.as_str() {
        "kernel/VERSION" => file.text.trim(),
        "kernel/dkms.conf" => {
            let mut values = file.text.lines().filter_map(|line| line.strip_prefix("PACKAGE_VERSION="));
            values.next().map_or("", |value| value.trim_matches('"'))
        }
        _ => return None,
    };
    (stated != workspace).then(|| format!("{}: the version is {stated:?}; {workspace:?} would be right", file.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn another_version_is_found() {
        assert_eq!(findings(&file("kernel/VERSION", "0.1.0\n"), "0.1.0"), None);
        assert!(findings(&file("kernel/VERSION", "0.1.1\n"), "0.1.0").is_some());
        let conf = |version: &str| file("kernel/dkms.conf", &format!("# text\nPACKAGE_VERSION={version}\n"));
        assert_eq!(findings(&conf("\"0.1.0\""), "0.1.0"), None);
        assert!(findings(&conf("\"0.2.0\""), "0.1.0").is_some());
        assert!(findings(&file("kernel/dkms.conf", "# empty\n"), "0.1.0").is_some());
    }
}
