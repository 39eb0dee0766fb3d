//! Rules for udev that set a device's queue whenever the device appears.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use glob::Pattern;

use crate::device::BlockDevice;
use crate::kind::Kind;
use crate::root::{Root, names, said, text};
use crate::set::Assignment;

/// Where rules of this machine's own are kept.
const OWN_RULES: &str = "/etc/udev/rules.d";
/// Where udev looks for rules. A file in one hides those of the same name in the ones behind it.
const RULES: [&str; 5] =
    [OWN_RULES, "/run/udev/rules.d", "/usr/local/lib/udev/rules.d", "/usr/lib/udev/rules.d", "/lib/udev/rules.d"];
/// Behind 60-persistent-storage.rules and 63-md-raid-arrays.rules, which give a device the names by which it may be found, and behind what distributions call
/// 60-...-scheduler.rules: the last one wins.
const BEGIN: &str = "64-hoistway-";
const END: &str = ".rules";

/// By what a device is found again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StableId {
    /// What udev compares: `ATTR{device/wwid}`, `ENV{ID_SERIAL}`.
    pub key: String,
    /// With what.
    pub value: String,
    /// What that is, in words.
    pub what: &'static str,
}

/// Why a device has no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoIdError {
    /// It is another thing each time.
    #[error("{device} cannot be found again: {why}")]
    Never {
        /// The device.
        device: String,
        /// Why.
        why: &'static str,
    },
    /// It tells nothing of itself.
    #[error(
        "{device} cannot be found again: it tells neither a world-wide name nor a serial number, and the kernel's name may be another's tomorrow{hint}"
    )]
    Silent {
        /// The device.
        device: String,
        /// What may help.
        hint: &'static str,
    },
}

/// By what a device is found again: its world-wide name, its uuid or serial number in sysfs, else what udev has found out. Never the kernel's name.
///
/// # Errors
/// When there is nothing of the sort.
pub fn stable_id(device: &BlockDevice) -> Result<StableId, NoIdError> {
    let name = device.name.clone();
    let never = |why| Err(NoIdError::Never { device: name.clone(), why });
    match device.kind {
        Kind::Loop => return never("a loop device is another file each time"),
        Kind::Zram | Kind::Ram => return never("it is memory, and made anew at each start"),
        Kind::Nbd | Kind::Ublk => return never("its number says nothing of the server behind it"),
        Kind::Partition => return never("the queue is its disk's"),
        _ => {}
    }
    let found = ATTRIBUTES.iter().find_map(|(file, what)| {
        let value = said(&device.sysfs.join(file)).filter(|value| is_name(value))?;
        Some(StableId { key: format!("ATTR{{{file}}}"), value, what })
    });
    let found = found.or_else(|| {
        KEPT.iter().find_map(|(key, what)| {
            let value = device.udev(key).filter(|value| is_name(value))?.to_owned();
            Some(StableId { key: format!("ENV{{{key}}}"), value, what })
        })
    });
    let hint = if device.kind == Kind::Virtio {
        "; a virtual disk gets one from its host, as with qemu's serial="
    } else {
        ""
    };
    found.ok_or(NoIdError::Silent { device: device.name.clone(), hint })
}

/// What sysfs tells, the surest first.
const ATTRIBUTES: [(&str, &str); 6] = [
    ("wwid", "world-wide name"),
    ("device/wwid", "world-wide name"),
    ("dm/uuid", "uuid"),
    ("md/uuid", "uuid"),
    ("device/cid", "card's id"),
    ("serial", "serial number"),
];

/// What udev keeps, the surest first.
const KEPT: [(&str, &str); 4] = [
    ("ID_WWN_WITH_EXTENSION", "world-wide name"),
    ("ID_WWN", "world-wide name"),
    ("MD_UUID", "uuid"),
    ("ID_SERIAL", "model and serial number"),
];

/// Whether a text can be a name: there is something in it beside noughts and blanks, and it fits on a line.
fn is_name(text: &str) -> bool {
    let says_something = text.chars().any(|c| c.is_ascii_alphanumeric() && c != '0');
    says_something && text.len() <= 256 && !text.contains(|c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER)
}

/// A rule, and the file that it belongs into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The file, on the machine.
    pub path: PathBuf,
    /// What it holds.
    pub text: String,
    /// By what the device is found.
    pub id: StableId,
}

/// The rule that sets a device's queue so whenever the device appears.
///
/// # Errors
/// When the device cannot be found again.
pub fn rule(device: &BlockDevice, words: &[Assignment]) -> Result<Rule, NoIdError> {
    let id = stable_id(device)?;
    let called = device.identity.model.as_deref().or(device.label.as_deref()).unwrap_or_default();
    let called = if called.is_empty() { String::new() } else { format!(" ({called})") };
    let mut text = format!(
        "# Scheduler and queue of the device that was {}{called}, written by `hoistway devices set --persist`.\n\
         # It is found by its {}, whatever the kernel calls it. To undo, remove this file.\n",
        device.name, id.what
    );
    for condition in ["ACTION!=\"add|change\"", "SUBSYSTEM!=\"block\"", "ENV{DEVTYPE}!=\"disk\""] {
        let _ = writeln!(text, "{condition}, GOTO=\"hoistway_end\"");
    }
    let _ = writeln!(text, "{}!=\"{}\", GOTO=\"hoistway_end\"", id.key, pattern(&id.value));
    let set = words.iter().map(|word| format!("ATTR{{{}}}=\"{}\"\n", file_of(device, &word.name), word.value));
    text.extend(scheduler_first(words, set.collect()));
    text.push_str("LABEL=\"hoistway_end\"\n");
    Ok(Rule { path: Path::new(OWN_RULES).join(format!("{BEGIN}{}{END}", file_name(&id.value))), text, id })
}

/// Each on a line of its own, as udev does them in the order of lines.
fn scheduler_first(words: &[Assignment], lines: Vec<String>) -> Vec<String> {
    let mut all: Vec<(bool, String)> = words.iter().map(|word| word.name != "scheduler").zip(lines).collect();
    all.sort_by_key(|(is_later, _)| *is_later);
    all.into_iter().map(|(_, line)| line).collect()
}

/// Where a name lies below the device's directory.
fn file_of(device: &BlockDevice, name: &str) -> String {
    let setting = device.queue.as_ref().and_then(|queue| queue.setting(name));
    match setting {
        _ if name == "scheduler" => "queue/scheduler".to_owned(),
        Some(setting) => setting.file.clone(),
        None => format!("queue/iosched/{name}"),
    }
}

/// A value as a pattern that matches it: what has a meaning to udev's patterns matches as any one character.
fn pattern(value: &str) -> String {
    value.chars().map(|c| if "*?[]|\"\\".contains(c) { '?' } else { c }).collect()
}

fn file_name(id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    id.chars().map(plain).collect()
}

/// Why a rule was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The folder or file cannot be written.
    #[error("{}: the rule cannot be written: {cause}{}", path.display(), if cause.kind() == io::ErrorKind::PermissionDenied { "; this needs root" } else { "" })]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
}

/// A rule that lies beside its place: it counts when it is moved there. Dropped, it goes.
#[derive(Debug)]
pub struct Prepared {
    draft: tempfile::NamedTempFile,
    to: PathBuf,
}

/// Writes a rule beside its place, or beside another file, so that what can fail has failed before anything else is done.
///
/// # Errors
/// When that cannot be written.
pub fn prepare(root: &Root, rule: &Rule, to: Option<&Path>) -> Result<Prepared, WriteError> {
    let to = to.map_or_else(|| root.path(&rule.path), Path::to_path_buf);
    let unwritable = |cause| WriteError::Unwritable { path: root.own(&to), cause };
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if folder.starts_with(root.path(OWN_RULES)) {
        fs::create_dir_all(folder).map_err(unwritable)?;
    }
    if to.is_dir() {
        return Err(unwritable(io::Error::from(io::ErrorKind::IsADirectory)));
    }
    // udev reads what ends in .rules alone.
    let draft = tempfile::Builder::new().prefix(".hoistway-").suffix(".new").tempfile_in(folder);
    // Its own error names the draft, which nobody knows.
    let draft = draft.map_err(|error| unwritable(error.kind().into()))?;
    let mode = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o644);
    let written = fs::write(draft.path(), &rule.text).and_then(|()| draft.as_file().set_permissions(mode));
    written.map_err(unwritable)?;
    Ok(Prepared { draft, to })
}

impl Prepared {
    /// Moves it to its place; answers whether another was there.
    ///
    /// # Errors
    /// When it cannot be moved.
    pub fn put(self) -> Result<bool, WriteError> {
        let was_there = self.to.exists();
        let to = self.to;
        self.draft.persist(&to).map_err(|error| WriteError::Unwritable { path: to.clone(), cause: error.error })?;
        Ok(was_there)
    }
}

/// The rules that this program has written for a device, wherever they are called after; on the machine.
pub fn own_rules(root: &Root, device: &BlockDevice) -> Vec<PathBuf> {
    let Ok(id) = stable_id(device) else { return Vec::new() };
    let marks = format!("{}!=\"{}\"", id.key, pattern(&id.value));
    let ours =
        names(&root.path(OWN_RULES)).into_iter().filter(|name| name.contains("-hoistway-") && name.ends_with(END));
    let paths = ours.map(|name| Path::new(OWN_RULES).join(name));
    paths.filter(|path| text(&root.path(path)).is_some_and(|text| text.contains(&marks))).collect()
}

/// A line of another rule that sets the scheduler of a device too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherRule {
    /// The file, on the machine.
    pub path: PathBuf,
    /// The number of the line, from 1.
    pub line: usize,
    /// What it sets.
    pub scheduler: String,
    /// Whether it is known to be meant for this device; else some of its conditions are not known to hold.
    pub is_sure: bool,
}

/// The rules of others that set the scheduler of a device, by all that can be known without udev: conditions on the name, on sysfs and on what udev keeps are
/// looked at, others may hold.
pub fn others(root: &Root, device: &BlockDevice) -> Vec<OtherRule> {
    let own = own_rules(root, device);
    let mut seen: Vec<String> = Vec::new();
    let mut found = Vec::new();
    for folder in RULES {
        for name in names(&root.path(folder)) {
            let path = Path::new(folder).join(&name);
            if !name.ends_with(END) || seen.contains(&name) || own.contains(&path) {
                continue;
            }
            let text = text(&root.path(&path)).unwrap_or_default();
            seen.push(name);
            found.extend(in_file(device, &path, &text));
        }
    }
    found
}

/// Whether a condition holds.
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
                // It may have gone elsewhere.
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

/// The rules of a file, each with the number of its first line: without comments, and with those that end in a backslash made one.
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

/// A part of a rule: a condition or an assignment.
#[derive(Debug, PartialEq, Eq)]
struct Key<'a> {
    /// `KERNEL`, `ATTR`, `ENV` ...
    name: &'a str,
    /// What stands in braces.
    of: &'a str,
    /// `==`, `!=`, `=`, `+=`, `:=`.
    operator: &'a str,
    value: String,
}

/// The parts of a rule (udev(7)); what is none is passed over.
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
            ("ATTR", file) => said(&device.sysfs.join(file)).map_or_else(|| matches(""), |text| matches(&text)),
            ("TEST", _) => Holds::Perhaps,
            _ => Holds::Perhaps,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_taken_apart() {
        let line =
            r#"ACTION=="add|change", KERNEL=="sd[a-z]",ATTR{queue/rotational}=="1", ATTR{queue/scheduler}="bfq""#;
        let keys = keys(line);
        let told: Vec<_> = keys.iter().map(|key| (key.name, key.of, key.operator, key.value.as_str())).collect();
        let expected = [
            ("ACTION", "", "==", "add|change"),
            ("KERNEL", "", "==", "sd[a-z]"),
            ("ATTR", "queue/rotational", "==", "1"),
            ("ATTR", "queue/scheduler", "=", "bfq"),
        ];
        assert_eq!(told, expected);
        assert_eq!(super::keys(r#"A=="x\"y", B="open"#).len(), 1);
        assert!(super::keys("no rule at all").is_empty());
    }

    #[test]
    fn lines_that_go_on_are_one_and_comments_none() {
        let text = "# a\nKERNEL==\"sda\", \\\n  ATTR{queue/scheduler}=\"bfq\"\n\nX=\"y\"\n";
        let lines = lines(text);
        assert_eq!((lines[0].0, lines.len()), (2, 3));
        assert_eq!(keys(&lines[0].1).len(), 2);
    }

    #[test]
    fn what_has_a_meaning_in_patterns_matches_as_any_character() {
        assert_eq!(pattern(r#"a*b[c]"d|e\f g"#), "a?b?c??d?e?f g");
        assert_eq!(file_name("t10.ATA     WD/40"), "t10.ATA_____WD_40");
    }

    #[test]
    fn noughts_and_blanks_are_no_name() {
        assert!(is_name("naa.5000") && is_name("0x1"));
        assert!(!is_name("") && !is_name("0000") && !is_name("  ") && !is_name("a\u{1}b"));
    }
}
