//! The names that hoistway knows, as candidates of a word.

use std::ffi::OsStr;

use clap::Arg;
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use hoistway_advise::Use;
use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_drive::probe::Probe;
use hoistway_sim::Kernel;

/// The names that an argument takes.
#[derive(Clone, Debug)]
pub struct KnownNames {
    list: List,
    /// Words beside the names, such as `all`.
    words: Vec<String>,
}

/// A list of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    /// Elevators with their aliases.
    Elevators,
    /// Built-in drives, and files.
    Drives,
    /// A drive as the first value, and a file as the second.
    DriveAndFile,
    /// Values of tunables, as in `elevator.tunable=value`.
    Settings,
    /// Elevators and `elevator.tunable`.
    Tunables,
    Kernels,
    Probes,
    Uses,
}

impl KnownNames {
    /// The names that an argument of this command takes; `None` if it takes others.
    pub fn of(command: &str, argument: &Arg) -> Option<KnownNames> {
        let list = match (argument.get_long(), command, argument.get_id().as_str()) {
            (Some("drive" | "probe" | "base"), ..) | (None, "drives", "drive") => List::Drives,
            (Some("validate"), ..) => List::DriveAndFile,
            (Some("elevator" | "elevators" | "check-elevators" | "recorded"), ..) | (None, "elevators", "name") => {
                List::Elevators
            }
            (Some("set"), ..) => List::Settings,
            (Some("tunables"), ..) => List::Tunables,
            (Some("kernel"), ..) => List::Kernels,
            (Some("only"), "drives", _) => List::Probes,
            (Some("for"), "advise", _) => List::Uses,
            _ => return None,
        };
        // The words are those of the help, as in `NAME|FILE.toml|fit|auto`.
        let is_word = |part: &&str| !part.is_empty() && part.bytes().all(|letter| letter.is_ascii_lowercase());
        let shown = argument.get_value_names().unwrap_or_default();
        let words = shown.iter().flat_map(|name| name.split('|')).filter(is_word).map(str::to_owned).collect();
        Some(KnownNames { list, words })
    }

    fn names(&self, typed: &str) -> Vec<CompletionCandidate> {
        match self.list {
            List::Elevators => elevators(),
            List::Drives | List::DriveAndFile => Profile::names().map(CompletionCandidate::new).collect(),
            List::Settings => settings(typed),
            List::Tunables => elevators().into_iter().chain(tunables("")).collect(),
            List::Kernels => Kernel::ALL.iter().map(|kernel| CompletionCandidate::new(kernel.name())).collect(),
            List::Probes => Probe::ALL.iter().map(|probe| CompletionCandidate::new(probe.name())).collect(),
            List::Uses => Use::ALL.iter().map(|known| CompletionCandidate::new(known.name())).collect(),
        }
    }
}

impl ValueCompleter for KnownNames {
    fn complete(&self, typed: &OsStr) -> Vec<CompletionCandidate> {
        let text = typed.to_string_lossy();
        let words = self.words.iter().map(CompletionCandidate::new);
        let mut found: Vec<CompletionCandidate> = self.names(&text).into_iter().chain(words).collect();
        found.retain(|candidate| candidate.get_value().to_string_lossy().starts_with(text.as_ref()));
        if matches!(self.list, List::Drives | List::DriveAndFile) {
            let files = PathCompleter::any().complete(typed);
            let is_profile = |path: &OsStr| path.to_string_lossy().ends_with(".toml");
            // Directories would hide the names, so they follow only a text that no name begins
            // with.
            let is_wanted =
                |path: &OsStr| is_profile(path) || (!text.is_empty() && found.is_empty() && is_directory(path));
            let files: Vec<_> = files.into_iter().filter(|file| is_wanted(file.get_value())).collect();
            found.extend(files);
        }
        found
    }

    fn complete_at(&self, index: usize, typed: &OsStr) -> Vec<CompletionCandidate> {
        if self.list == List::DriveAndFile && index > 0 {
            return PathCompleter::any().complete(typed);
        }
        self.complete(typed)
    }
}

fn is_directory(path: &OsStr) -> bool {
    path.to_string_lossy().ends_with('/')
}

fn elevators() -> Vec<CompletionCandidate> {
    let with_help = |kind: &Kind| {
        let info = kind.info();
        let names = std::iter::once(info.name).chain(info.aliases.iter().copied());
        names.map(|name| CompletionCandidate::new(name).help(Some(info.headline.into())))
    };
    hoistway_custom::all().iter().flat_map(with_help).collect()
}

/// `elevator.tunable`, followed by `end`.
fn tunables(end: &str) -> Vec<CompletionCandidate> {
    let of = |kind: &Kind| {
        let info = kind.info();
        let name = info.name;
        info.tunables.iter().map(move |row| {
            CompletionCandidate::new(format!("{name}.{}{end}", row.name)).help(Some(row.meaning.into()))
        })
    };
    hoistway_custom::all().iter().flat_map(of).collect()
}

/// `elevator.tunable=`, or after the equals sign the default value.
fn settings(typed: &str) -> Vec<CompletionCandidate> {
    let Some((name, _)) = typed.split_once('=') else { return tunables("=") };
    let default = name.split_once('.').and_then(|(elevator, tunable)| {
        hoistway_custom::find(elevator)?.info().tunables.iter().find(|row| row.name == tunable)
    });
    let candidate = |row: &hoistway_core::Tunable| {
        CompletionCandidate::new(format!("{name}={}", row.default)).help(Some("the default".into()))
    };
    default.map(candidate).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(names: &KnownNames, typed: &str) -> Vec<String> {
        let found = names.complete(OsStr::new(typed));
        found.iter().map(|candidate| candidate.get_value().to_string_lossy().into_owned()).collect()
    }

    fn of(list: List) -> KnownNames {
        KnownNames { list, words: Vec::new() }
    }

    #[test]
    fn a_setting_is_completed_in_steps() {
        assert_eq!(candidates(&of(List::Settings), "cfq-v3.slice_i"), ["cfq-v3.slice_idle="]);
        assert_eq!(candidates(&of(List::Settings), "cfq-v3.slice_idle="), ["cfq-v3.slice_idle=8"]);
        assert_eq!(candidates(&of(List::Settings), "cfq-v3.absent="), [""; 0]);
    }

    #[test]
    fn names_words_and_profile_files_are_candidates() {
        let drive = Arg::new("drive").long("drive").value_name("NAME|FILE.toml|fit|auto");
        let names = KnownNames::of("advise", &drive).expect("drives");
        assert_eq!(candidates(&names, "fi"), ["fit"]);
        assert_eq!(candidates(&names, "ssd-nv"), ["ssd-nvme-tlc", "ssd-nvme-tlc-mixed"]);
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["mine.toml", "mine.txt"] {
            std::fs::write(folder.path().join(name), "").expect("a file");
        }
        let typed = format!("{}/mi", folder.path().display());
        assert_eq!(candidates(&names, &typed), [format!("{typed}ne.toml")]);
        assert_eq!(candidates(&of(List::Elevators), "dead"), ["deadline"]);
        assert!(candidates(&of(List::Elevators), "").len() > Kind::ALL.len(), "aliases are candidates");
    }
}
