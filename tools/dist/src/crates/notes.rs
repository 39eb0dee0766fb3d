//! Release notes: the section of a version in CHANGELOG.md.

use anyhow::{Result, bail};

/// Returns the section of a version, without its heading.
///
/// # Errors
/// The changelog has no section of the version, or nothing is in it.
pub fn section(changelog: &str, version: &str) -> Result<String> {
    let mut known = Vec::new();
    let mut section: Option<Vec<&str>> = None;
    for line in changelog.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            let name = heading.split_whitespace().next().unwrap_or_default();
            known.push(name);
            if section.is_some() {
                break;
            }
            section = (name == version).then(Vec::new);
        } else if let Some(lines) = &mut section {
            lines.push(line);
        }
    }
    let known = if known.is_empty() { "no version".to_owned() } else { known.join(", ") };
    let Some(lines) = section else {
        bail!("CHANGELOG.md has no section `## {version}`; it has {known}");
    };
    let text = lines.join("\n").trim().to_owned();
    if text.is_empty() {
        bail!("CHANGELOG.md: the section `## {version}` is empty: list the changes that users can see");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGELOG: &str = "# Changelog\n\n## 0.2.0 (unreleased)\n\n## 0.1.1\n\n- A fix.\n\n### Library\n\n- A call.\n\n## 0.1.0\n\n- First.\n";

    #[test]
    fn the_section_ends_at_the_next_version() {
        assert_eq!(section(CHANGELOG, "0.1.1").unwrap(), "- A fix.\n\n### Library\n\n- A call.");
        assert_eq!(section(CHANGELOG, "0.1.0").unwrap(), "- First.");
    }

    #[test]
    fn a_missing_section_names_the_known_versions() {
        let error = section(CHANGELOG, "0.1").unwrap_err().to_string();
        assert_eq!(error, "CHANGELOG.md has no section `## 0.1`; it has 0.2.0, 0.1.1, 0.1.0");
        assert!(section(CHANGELOG, "0.2.0").unwrap_err().to_string().contains("is empty"));
    }
}
