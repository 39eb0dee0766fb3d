//! udev rules that set the queue of a device whenever the device appears.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use glob::Pattern;

use crate::device::BlockDevice;
use crate::files::{list_names, read_nonempty, read_text};
use crate::kind::Kind;
use crate::root::Root;
use crate::settings::Assignment;

/// The directory of local rules.
const OWN_RULES: &str = "/etc/udev/rules.d";
/// The directories of rules. A file hides files of the same name in later directories.
const RULES: [&str; 5] =
    [OWN_RULES, "/run/udev/rules.d", "/usr/local/lib/udev/rules.d", "/usr/lib/udev/rules.d", "/lib/udev/rules.d"];
/// The prefix of a rule file. It sorts after 60-persistent-storage.rules and
/// 63-md-raid-arrays.rules, which set the identifying properties, and after the distributions'
/// 60-...-scheduler.rules, because the last rule wins.
const PREFIX: &str = "64-hoistway-";
const SUFFIX: &str = ".rules";

/// A property that identifies a device across restarts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StableId {
    /// The key of the udev rule: `ATTR{device/wwid}`, `ENV{ID_SERIAL}`.
    pub key: String,
    /// The value to match.
    pub value: String,
    /// The kind of identifier, in words.
    pub what: &'static str,
}

/// A device cannot have a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoIdError {
    /// The device has no identity of its own: it is created anew each time.
    #[error("{device} cannot be found again: {why}")]
    Never {
        /// The device.
        device: String,
        /// The reason.
        why: &'static str,
    },
    /// The device reports no identifier.
    #[error(
        "{device} cannot be found again: it reports neither a world-wide name nor a serial number, and another device may have the kernel's name after a restart{hint}"
    )]
    Unreported {
        /// The device.
        device: String,
        /// A remedy; may be empty.
        hint: &'static str,
    },
}

/// The identifier of a device: world-wide name, uuid or serial number in sysfs, else a property in
/// udev's database. Never the kernel's name.
///
/// # Errors
/// [`NoIdError`] if the device has no identifier.
pub fn stable_id(device: &BlockDevice) -> Result<StableId, NoIdError> {
    let name = device.name.clone();
    let never = |why| Err(NoIdError::Never { device: name.clone(), why });
    match device.kind {
        Kind::Loop => return never("a loop device may have another file each time"),
        Kind::Zram | Kind::Ram => return never("it is memory, which is created anew at each start"),
        Kind::Nbd | Kind::Ublk => return never("its number does not identify the server behind it"),
        Kind::Partition => return never("a partition uses its disk's queue"),
        _ => {}
    }
    let found = SYSFS_IDS.iter().find_map(|(file, what)| {
        let value = read_nonempty(&device.sysfs.join(file)).filter(|value| is_identifier(value))?;
        Some(StableId { key: format!("ATTR{{{file}}}"), value, what })
    });
    let found = found.or_else(|| {
        UDEV_IDS.iter().find_map(|(key, what)| {
            let value = device.udev(key).filter(|value| is_identifier(value))?.to_owned();
            Some(StableId { key: format!("ENV{{{key}}}"), value, what })
        })
    });
    let hint = if device.kind == Kind::Virtio {
        "; a virtual disk gets one from its host, as with qemu's serial="
    } else {
        ""
    };
    found.ok_or(NoIdError::Unreported { device: device.name.clone(), hint })
}

/// Identifiers in sysfs, most reliable first.
const SYSFS_IDS: [(&str, &str); 6] = [
    ("wwid", "world-wide name"),
    ("device/wwid", "world-wide name"),
    ("dm/uuid", "uuid"),
    ("md/uuid", "uuid"),
    ("device/cid", "card's id"),
    ("serial", "serial number"),
];

/// Identifiers in udev's database, most reliable first.
const UDEV_IDS: [(&str, &str); 4] = [
    ("ID_WWN_WITH_EXTENSION", "world-wide name"),
    ("ID_WWN", "world-wide name"),
    ("MD_UUID", "uuid"),
    ("ID_SERIAL", "model and serial number"),
];

/// Returns true if a text can identify a device: it contains more than zeros and blanks and fits on
/// a line.
fn is_identifier(text: &str) -> bool {
    let is_significant = text.chars().any(|c| c.is_ascii_alphanumeric() && c != '0');
    is_significant && text.len() <= 256 && !text.contains(|c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER)
}

/// A udev rule and its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The file, as a path of the machine.
    pub path: PathBuf,
    /// The content of the file.
    pub text: String,
    /// The identifier of the device.
    pub id: StableId,
}

/// The rule that makes assignments to a device's queue whenever the device appears.
///
/// # Errors
/// [`NoIdError`] if the device has no identifier.
pub fn rule(device: &BlockDevice, assignments: &[Assignment]) -> Result<Rule, NoIdError> {
    let id = stable_id(device)?;
    let model = device.identity.model.as_deref().or(device.label.as_deref()).unwrap_or_default();
    let model = if model.is_empty() { String::new() } else { format!(" ({model})") };
    let mut text = format!(
        "# Scheduler and queue of the device that was {}{model}, written by `hoistway devices set --persist`.\n\
         # It is found by its {}, whatever the kernel calls it. To undo, remove this file.\n",
        device.name, id.what
    );
    for condition in ["ACTION!=\"add|change\"", "SUBSYSTEM!=\"block\"", "ENV{DEVTYPE}!=\"disk\""] {
        let _ = writeln!(text, "{condition}, GOTO=\"hoistway_end\"");
    }
    let _ = writeln!(text, "{}!=\"{}\", GOTO=\"hoistway_end\"", id.key, pattern(&id.value));
    // udev carries out one line after the other, and a switch of the scheduler resets its tunables.
    let (schedulers, others): (Vec<_>, Vec<_>) =
        assignments.iter().partition(|assignment| assignment.name == "scheduler");
    for assignment in schedulers.into_iter().chain(others) {
        let _ = writeln!(text, "ATTR{{{}}}=\"{}\"", file_of(device, &assignment.name), assignment.value);
    }
    text.push_str("LABEL=\"hoistway_end\"\n");
    Ok(Rule { path: Path::new(OWN_RULES).join(format!("{PREFIX}{}{SUFFIX}", file_name(&id.value))), text, id })
}

/// The file of a setting below the device's directory.
fn file_of(device: &BlockDevice, name: &str) -> String {
    let setting = device.queue.as_ref().and_then(|queue| queue.setting(name));
    match setting {
        _ if name == "scheduler" => "queue/scheduler".to_owned(),
        Some(setting) => setting.file.clone(),
        None => format!("queue/iosched/{name}"),
    }
}

/// A pattern that matches a value: `?` replaces each character with a meaning in udev's patterns.
fn pattern(value: &str) -> String {
    value.chars().map(|c| if "*?[]|\"\\".contains(c) { '?' } else { c }).collect()
}

fn file_name(id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    id.chars().map(plain).collect()
}

/// A rule was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The directory or file cannot be written.
    #[error("{}: the rule cannot be written: {cause}{}", path.display(), if cause.kind() == io::ErrorKind::PermissionDenied { "; this needs root" } else { "" })]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
}

/// A rule in a temporary file beside its final path. [`PreparedRule::commit`] renames the file, and
/// the rule takes effect; dropping the value removes the file.
#[derive(Debug)]
pub struct PreparedRule {
    draft: tempfile::NamedTempFile,
    to: PathBuf,
}

/// Writes a rule to a temporary file beside its own path, or beside `to`. Errors occur here, before
/// anything is changed.
///
/// # Errors
/// [`WriteError`] if the file cannot be written.
pub fn prepare(root: &Root, rule: &Rule, to: Option<&Path>) -> Result<PreparedRule, WriteError> {
    let to = to.map_or_else(|| root.path(&rule.path), Path::to_path_buf);
    let unwritable = |cause| WriteError::Unwritable { path: root.machine_path(&to), cause };
    let directory = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if directory.starts_with(root.path(OWN_RULES)) {
        fs::create_dir_all(directory).map_err(unwritable)?;
    }
    if to.is_dir() {
        return Err(unwritable(io::Error::from(io::ErrorKind::IsADirectory)));
    }
    // udev ignores files that do not end in .rules.
    let draft = tempfile::Builder::new().prefix(".hoistway-").suffix(".new").tempfile_in(directory);
    // The original error names the temporary file, which means nothing to users.
    let mut draft = draft.map_err(|error| unwritable(error.kind().into()))?;
    let written = draft.write_all(rule.text.as_bytes());
    // udev and other users read the rule, whatever the umask of this process is.
    let written = written.and_then(|()| draft.as_file().set_permissions(fs::Permissions::from_mode(0o644)));
    written.and_then(|()| draft.as_file().sync_all()).map_err(unwritable)?;
    Ok(PreparedRule { draft, to })
}

impl PreparedRule {
    /// Renames the file to its final path; returns true if that replaced another file.
    ///
    /// # Errors
    /// [`WriteError`] if the file cannot be renamed.
    pub fn commit(self) -> Result<bool, WriteError> {
        let existed = self.to.exists();
        let to = self.to;
        self.draft.persist(&to).map_err(|error| WriteError::Unwritable { path: to.clone(), cause: error.error })?;
        Ok(existed)
    }
}

/// The rule files that this program has written for a device, whatever device name is in the file
/// name; as paths of the machine.
pub fn own_rules(root: &Root, device: &BlockDevice) -> Vec<PathBuf> {
    let Ok(id) = stable_id(device) else { return Vec::new() };
    let marks = format!("{}!=\"{}\"", id.key, pattern(&id.value));
    let ours = list_names(&root.path(OWN_RULES))
        .into_iter()
        .filter(|name| name.contains("-hoistway-") && name.ends_with(SUFFIX));
    let paths = ours.map(|name| Path::new(OWN_RULES).join(name));
    paths.filter(|path| read_text(&root.path(path)).is_some_and(|text| text.contains(&marks))).collect()
}

/// A line of another program's rule that also sets the scheduler of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherRule {
    /// The file, as a path of the machine.
    pub path: PathBuf,
    /// The line number, from 1.
    pub line: usize,
    /// The scheduler that the rule sets.
    pub scheduler: String,
    /// True if all conditions are known to hold for the device; false if some cannot be evaluated.
    pub is_sure: bool,
}

/// Finds rules of other programs that set the scheduler of a device. Conditions on the name, on
/// sysfs attributes and on properties in udev's database are evaluated; other conditions may hold.
pub fn others(root: &Root, device: &BlockDevice) -> Vec<OtherRule> {
    let own = own_rules(root, device);
    let mut seen: Vec<String> = Vec::new();
    let mut found = Vec::new();
    for directory in RULES {
        for name in list_names(&root.path(directory)) {
            let path = Path::new(directory).join(&name);
            if !name.ends_with(SUFFIX) || seen.contains(&name) || own.contains(&path) {
                continue;
            }
            let text = read_text(&root.path(&path)).unwrap_or_default();
            seen.push(name);
            found.extend(in_file(device, &path, &text));
        }
    }
    found
}

/// The result of evaluating a condition; the minimum of several is their conjunction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Holds {
    No,
    Perhaps,
    Yes,
}

fn in_file(device: &BlockDevice, path: &Path, text: &str) -> Vec<OtherRule> {
    let mut found = Vec::new();
    let mut label: Option<String> = None;
    let mut sure = true;
    for (number, line) in lines(text) {
        let keys = keys(&line);
        if let Some(wanted) = &label {
            if !keys.iter().any(|key| key.name == "LABEL" && key.value == *wanted) {
                continue;
            }
            label = None;
        }
        let holds = keys.iter().map(|key| key.holds(device)).min().unwrap_or(Holds::Yes);
        if holds == Holds::No {
            continue;
        }
        if let Some(goto) = keys.iter().find(|key| key.name == "GOTO") {
            match holds {
                Holds::Yes => label = Some(goto.value.clone()),
                // udev may have skipped the following lines.
                _ => sure = false,
            }
        }
        if let Some(set) = keys.iter().find(|key| key.name == "ATTR" && key.of == "queue/scheduler" && key.is_set()) {
            let (path, scheduler) = (path.to_path_buf(), set.value.clone());
            found.push(OtherRule { path, line: number, scheduler, is_sure: sure && holds == Holds::Yes });
        }
    }
    found
}

/// The rules of a file, each with the number of its first line, without comments and with
/// continuation lines joined.
fn lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('#') {
            continue;
        }
        let (part, more) = line.strip_suffix('\\').map_or((line, false), |part| (part, true));
        match lines.last_mut().filter(|_| goes_on) {
            Some((_, whole)) => whole.push_str(part),
            None => lines.push((index + 1, part.to_owned())),
        }
        goes_on = more;
    }
    lines
}

/// One key of a rule: a condition or an assignment.
#[derive(Debug, PartialEq, Eq)]
struct Key<'a> {
    /// `KERNEL`, `ATTR`, `ENV` ...
    name: &'a str,
    /// The text in braces.
    of: &'a str,
    /// `==`, `!=`, `=`, `+=`, `:=`.
    operator: &'a str,
    value: String,
}

/// Splits a rule into keys (udev(7)); text of another form is skipped.
fn keys(line: &str) -> Vec<Key<'_>> {
    let mut keys = Vec::new();
    let mut rest = line;
    while let Some(quote) = rest.find('"') {
        let (head, behind) = rest.split_at(quote);
        let mut end = None;
        let mut escaped = false;
        for (at, byte) in behind.bytes().enumerate().skip(1) {
            match byte {
                b'"' if !escaped => {
                    end = Some(at);
                    break;
                }
                byte => escaped = byte == b'\\' && !escaped,
            }
        }
        let Some(end) = end else { break };
        let head = head.trim_start_matches([',', ' ', '\t']).trim_end_matches(['e', 'i']).trim_end();
        let operator = ["==", "!=", "+=", "-=", ":=", "="].into_iter().find(|operator| head.ends_with(operator));
        if let Some(operator) = operator {
            let name = head.strip_suffix(operator).unwrap_or(head).trim();
            let (name, of) = name.split_once('{').map_or((name, ""), |(name, of)| (name, of.trim_end_matches('}')));
            keys.push(Key { name, of, operator, value: behind[1..end].replace("\\\"", "\"") });
        }
        rest = &behind[end + 1..];
    }
    keys
}

impl Key<'_> {
    fn is_set(&self) -> bool {
        matches!(self.operator, "=" | ":=" | "+=")
    }

    fn holds(&self, device: &BlockDevice) -> Holds {
        let equal = match self.operator {
            "==" => true,
            "!=" => false,
            _ => return Holds::Yes,
        };
        let matches = |text: &str| {
            let is_it = self.value.split('|').any(|pattern| Pattern::new(pattern).is_ok_and(|p| p.matches(text)));
            if is_it == equal { Holds::Yes } else { Holds::No }
        };
        let is_part = device.kind == Kind::Partition;
        match (self.name, self.of) {
            ("KERNEL", _) => matches(&device.name),
            ("SUBSYSTEM", _) => matches("block"),
            ("ACTION", _) if equal => matches("add").max(matches("change")),
            ("ACTION", _) => matches("add").min(matches("change")),
            ("ENV", "DEVTYPE") => matches(if is_part { "partition" } else { "disk" }),
            ("ENV", name) => device.udev(name).map_or(Holds::Perhaps, matches),
            ("ATTR", file) => {
                read_nonempty(&device.sysfs.join(file)).map_or_else(|| matches(""), |text| matches(&text))
            }
            ("TEST", _) => Holds::Perhaps,
            _ => Holds::Perhaps,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_split_into_keys() {
        let line =
            r#"ACTION=="add|change", KERNEL=="sd[a-z]",ATTR{queue/rotational}=="1", ATTR{queue/scheduler}="bfq""#;
        let keys = keys(line);
        let fields: Vec<_> = keys.iter().map(|key| (key.name, key.of, key.operator, key.value.as_str())).collect();
        let expected = [
            ("ACTION", "", "==", "add|change"),
            ("KERNEL", "", "==", "sd[a-z]"),
            ("ATTR", "queue/rotational", "==", "1"),
            ("ATTR", "queue/scheduler", "=", "bfq"),
        ];
        assert_eq!(fields, expected);
        assert_eq!(super::keys(r#"A=="x\"y", B="open"#).len(), 1);
        assert!(super::keys("no rule at all").is_empty());
    }

    #[test]
    fn continuation_lines_are_joined_and_comments_dropped() {
        let text = "# a\nKERNEL==\"sda\", \\\n  ATTR{queue/scheduler}=\"bfq\"\n\nX=\"y\"\n";
        let lines = lines(text);
        assert_eq!((lines[0].0, lines.len()), (2, 3));
        assert_eq!(keys(&lines[0].1).len(), 2);
    }

    #[test]
    fn pattern_characters_of_a_value_match_any_character() {
        assert_eq!(pattern(r#"a*b[c]"d|e\f g"#), "a?b?c??d?e?f g");
        assert_eq!(file_name("t10.ATA     WD/40"), "t10.ATA_____WD_40");
    }

    #[test]
    fn zeros_and_blanks_are_no_identifier() {
        assert!(is_identifier("naa.5000") && is_identifier("0x1"));
        assert!(!is_identifier("") && !is_identifier("0000") && !is_identifier("  ") && !is_identifier("a\u{1}b"));
    }
}
