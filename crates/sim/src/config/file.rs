//! Host files describe a simulated machine: TOML with a key for each setting of [`HostConfig`].

use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use hoistway_units::position::line_and_column;
use toml::de::{DeTable, DeValue};

use super::host::HostConfig;
use super::kernel::Kernel;
use super::keys::{KEYS, Key, ValueForm};

/// Reasons why a host file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HostFileError {
    /// The file cannot be read.
    #[error("{file}: cannot read the host file: {source}")]
    Read {
        /// The name of the file.
        file: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file is not valid TOML, or has an unknown key or an invalid value.
    #[error("{file}:{line}:{column}: {problem}")]
    Wrong {
        /// The name of the file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The column, in characters from 1.
        column: usize,
        /// The problem: the key, the value, and the valid values.
        problem: String,
    },
}

impl HostConfig {
    /// Reads a host file.
    ///
    /// # Errors
    /// [`HostFileError::Read`] if the file cannot be read, [`HostFileError::Wrong`] as for
    /// [`HostConfig::from_toml`].
    pub fn load(path: &Path) -> Result<HostConfig, HostFileError> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => HostConfig::from_toml(&text, &file),
            Err(source) => Err(HostFileError::Read { file, source }),
        }
    }

    /// Parses the text of a host file. The key `kernel` selects a kernel, whose defaults apply to
    /// all settings that the file lacks. Without `kernel`, the defaults are those of
    /// [`HostConfig::default`].
    ///
    /// # Errors
    /// [`HostFileError::Wrong`] for invalid TOML, an unknown key, a wrong type, or a value out of
    /// range. The error names `file` and the position, and describes the valid values.
    pub fn from_toml(text: &str, file: &str) -> Result<HostConfig, HostFileError> {
        let error_at = |span: Range<usize>, problem: String| {
            let (line, column) = line_and_column(text, span.start);
            HostFileError::Wrong { file: file.to_owned(), line, column, problem }
        };
        let table = DeTable::parse(text)
            .map_err(|error| error_at(error.span().unwrap_or_default(), error.message().to_owned()))?;
        let table = table.get_ref();
        let known = |name: &str| name == "kernel" || KEYS.iter().any(|key| key.name == name);
        let unknown = table.keys().filter(|name| !known(name.get_ref())).min_by_key(|name| name.span().start);
        if let Some(name) = unknown {
            return Err(error_at(
                name.span(),
                format!("there is no host setting `{}`; there are {}", name.get_ref(), key_names()),
            ));
        }
        let mut host = match table.get("kernel") {
            None => HostConfig::default(),
            Some(value) => host_of_kernel(value.get_ref()).map_err(|problem| error_at(value.span(), problem))?,
        };
        // The settings are applied in the order of `KEYS`, not of the file, because some change the
        // value of others: `nr_requests` switches `pool_follows_drive` off.
        for key in KEYS {
            if let Some(value) = table.get(key.name) {
                let number = key.read(value.get_ref()).map_err(|problem| error_at(value.span(), problem))?;
                (key.set)(&mut host, number);
            }
        }
        Ok(host)
    }

    /// Returns the table of settings for docs/hosts.md in Markdown: a row for each key with its
    /// valid values, the default without a kernel, the default of each kernel, and the description.
    pub fn keys_markdown() -> String {
        let hosts: Vec<HostConfig> =
            std::iter::once(HostConfig::default()).chain(Kernel::ALL.map(HostConfig::kernel)).collect();
        let mut text = String::from("| key | valid values | no kernel |");
        for kernel in Kernel::ALL {
            let _ = write!(text, " {} |", kernel.name());
        }
        let _ = writeln!(text, " description |\n|{}", "---|".repeat(Kernel::ALL.len() + 4));
        for key in KEYS {
            let _ = write!(text, "| `{}` | {} |", key.name, key.form.describe());
            for host in &hosts {
                let _ = write!(text, " {} |", key.form.show((key.get)(host)));
            }
            let _ = writeln!(text, " {} |", key.description);
        }
        text
    }
}

/// Returns the host of the kernel that the key `kernel` names.
///
/// # Errors
/// The problem: the value is not a string, or the kernel is unknown.
fn host_of_kernel(value: &DeValue) -> Result<HostConfig, String> {
    let known = || Kernel::ALL.map(|kernel| format!("\"{}\"", kernel.name())).join(", ");
    let name = value
        .as_str()
        .ok_or_else(|| format!("`kernel` is {}: write one of {}, with quotes", describe(value), known()))?;
    let kernel = Kernel::from_name(name).ok_or_else(|| format!("`kernel` is \"{name}\": there are {}", known()))?;
    Ok(HostConfig::kernel(kernel))
}

/// Returns the names of all keys, separated by commas.
fn key_names() -> String {
    let names: Vec<&str> = std::iter::once("kernel").chain(KEYS.iter().map(|key| key.name)).collect();
    names.join(", ")
}

/// Returns a value of the file in the form of an error message.
fn describe(value: &DeValue) -> String {
    match value {
        DeValue::String(text) => format!("\"{text}\""),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(switch) => switch.to_string(),
        DeValue::Datetime(date) => date.to_string(),
        DeValue::Array(_) => "a list".into(),
        DeValue::Table(_) => "a table".into(),
    }
}

impl Key {
    /// Converts a value of the file to the number that represents it: see [`Key`].
    ///
    /// # Errors
    /// The problem: the key, the value, and the valid values.
    fn read(&self, value: &DeValue) -> Result<u64, String> {
        let name = self.name;
        let problem = || format!("`{name}` is {}: it takes {}", describe(value), self.form.describe());
        match self.form {
            ValueForm::Number { min, max, .. } => {
                let DeValue::Integer(number) = value else { return Err(problem()) };
                let digits = number.as_str().replace('_', "");
                let number = u64::from_str_radix(&digits, number.radix()).map_err(|_| problem())?;
                if (min..=max).contains(&number) { Ok(number) } else { Err(problem()) }
            }
            ValueForm::Switch => value.as_bool().map(u64::from).ok_or_else(problem),
            ValueForm::Word(words) => {
                let index = words.iter().position(|word| value.as_str() == Some(word));
                index.map(|index| index as u64).ok_or_else(problem)
            }
            ValueForm::Memory => {
                value.as_str().and_then(parse_mib).filter(|mib| (2..=1 << 24).contains(mib)).ok_or_else(problem)
            }
        }
    }
}

/// Parses an amount of memory such as "2 GiB" to MiB. `None` if the text is not a whole number of
/// MiB, GiB or TiB.
fn parse_mib(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let factor = match unit.trim() {
        "MiB" => 1,
        "GiB" => 1 << 10,
        "TiB" => 1 << 20,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Plugging, ReadAheadRules, WriteBack};

    fn refused(text: &str) -> String {
        HostConfig::from_toml(text, "mine.toml").unwrap_err().to_string()
    }

    #[test]
    fn keys_of_a_file_replace_the_defaults_of_its_kernel() {
        let text = "memory = \"1 GiB\"\nplug_requests = 8\nkernel = \"3.2\"\nhz = 1_000\naged = true\nwrite_back = \"pdflush\"\n";
        let host = HostConfig::from_toml(text, "mine.toml").unwrap();
        assert_eq!(
            (host.kernel, host.page_cache_mib, host.queue.clock.hz, host.aged),
            (Some(Kernel::V3_2), 921, 1000, true)
        );
        assert_eq!((host.plugging, host.write_back), (Plugging::Task { requests: 8, kib: 0 }, WriteBack::Pdflush));
        assert_eq!((host.dirty_percent, host.read_ahead), (20, ReadAheadRules::OnDemandWithHistory));
    }

    #[test]
    fn errors_name_the_position_the_value_and_the_valid_values() {
        let message = refused("cpus = 2\n  hertz = 100\n");
        assert!(
            message.starts_with("mine.toml:2:3: there is no host setting `hertz`; there are kernel, memory,"),
            "{message}"
        );
        assert_eq!(refused("hz = 2000"), "mine.toml:1:6: `hz` is 2000: it takes 1 to 1000");
        assert_eq!(refused("cpus = \"two\""), "mine.toml:1:8: `cpus` is \"two\": it takes 1 to 4096");
        assert_eq!(refused("cpus = -1"), "mine.toml:1:8: `cpus` is -1: it takes 1 to 4096");
        assert_eq!(refused("aged = 1"), "mine.toml:1:8: `aged` is 1: it takes true or false");
        assert_eq!(
            refused("plugging = \"tasks\""),
            "mine.toml:1:12: `plugging` is \"tasks\": it takes \"none\", \"queue\" or \"task\""
        );
        assert_eq!(
            refused("memory = \"2GB\""),
            "mine.toml:1:10: `memory` is \"2GB\": it takes \"2 MiB\" to \"16 TiB\", in whole MiB, GiB or TiB"
        );
        assert!(
            refused("kernel = 3.2").contains("`kernel` is 3.2: write one of \"2.4\", \"2.6.18\", "),
            "{}",
            refused("kernel = 3.2")
        );
        assert!(refused("cpus = ").starts_with("mine.toml:1:"), "{}", refused("cpus = "));
    }

    #[test]
    fn each_key_accepts_its_own_value() {
        for kernel in Kernel::ALL {
            let host = HostConfig::kernel(kernel);
            for key in KEYS {
                let mut again = host.clone();
                (key.set)(&mut again, (key.get)(&host));
                assert_eq!((key.get)(&again), (key.get)(&host), "{} of {}", key.name, kernel.name());
            }
        }
    }
}
