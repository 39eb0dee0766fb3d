//! What is told: names, and what is wrong, in GNU tar's words where programs look for them.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _};

use hoistway_order::archive::{Severity, Told, Trouble as Wrong, said, unsafe_prefix};
use hoistway_order::{Doing, Problem, Trouble, shown};

use crate::cli::{TarArgs, is_standard};
use crate::failure::{Exit, tell};
use crate::output::Out;

/// Tells, and remembers how bad it was.
pub struct Teller<'a> {
    args: &'a TarArgs,
    out: &'a mut Out,
    worst: Severity,
    /// Prefixes that are left out of names, each told once.
    left_out: BTreeSet<Vec<u8>>,
    is_terminal: bool,
}

impl<'a> Teller<'a> {
    pub fn new(args: &'a TarArgs, out: &'a mut Out) -> Teller<'a> {
        let is_terminal = io::stdout().is_terminal();
        Teller { args, out, worst: Severity::Note, left_out: BTreeSet::new(), is_terminal }
    }

    /// A path that was asked for: whether its name is another in the archive.
    pub fn asked(&mut self, path: &[u8]) {
        let prefix = &path[..unsafe_prefix(path)];
        if self.args.absolute_names || prefix.is_empty() || !self.left_out.insert(prefix.to_vec()) {
            return;
        }
        tell(&format!("hoistway tar: Removing leading `{}' from member names", shown(prefix)));
    }

    /// What is wrong with a path that is looked for.
    pub fn problem(&mut self, problem: &Problem) {
        let path = shown(&problem.path);
        match problem.what {
            Trouble::Failed { doing: Doing::Place, .. } | Trouble::Replaced => {}
            Trouble::Failed { doing: Doing::Look, errno } => {
                self.wrong(Severity::Error, &format!("{path}: Cannot stat: {}", said(errno)));
            }
            Trouble::Failed { doing: Doing::Open, errno } => {
                let wrong = Wrong::opening(errno);
                self.wrong(wrong.severity(), &format!("{path}: {wrong}"));
            }
            Trouble::Failed { doing: Doing::Read, errno } => {
                self.wrong(Severity::Error, &format!("{path}: Cannot read: {}", said(errno)));
            }
            Trouble::Loop => self.wrong(
                Severity::Differs,
                &format!("{path}: this directory lies within itself; what is in it is not archived again"),
            ),
            Trouble::NoPlaces => self.wrong(Severity::Note, &problem.to_string()),
        }
    }

    /// What the archive tells.
    pub fn told(&mut self, told: &Told) {
        match told {
            Told::Member(name) if self.is_apart() => {
                // Who looks no further is no reason to stop.
                let _ = self.out.line(shown(name));
                if self.is_terminal {
                    let _ = self.out.flush();
                }
            }
            Told::Member(name) => tell(&shown(name)),
            Told::Trouble(path, wrong) => self.wrong(wrong.severity(), &format!("{}: {wrong}", shown(path))),
        }
    }

    /// How many files are not in the archive because others of their names are.
    pub fn replaced(&self, files: u64) {
        if files > 0 {
            let are = if files == 1 { "file is" } else { "files are" };
            tell(&format!(
                "hoistway tar: {files} {are} not archived: others that were asked for later have the same member names"
            ));
        }
    }

    /// What the run ends with.
    pub fn end(self) -> Exit {
        match self.worst {
            Severity::Note => Exit::Success,
            Severity::Differs => Exit::Failed,
            Severity::Error => {
                tell("hoistway tar: Exiting with failure status due to previous errors");
                Exit::Code(2)
            }
        }
    }

    /// Whether standard output is for names.
    fn is_apart(&self) -> bool {
        self.args.file.as_deref().is_some_and(|file| !is_standard(file.as_os_str()))
    }

    fn wrong(&mut self, severity: Severity, text: &str) {
        self.worst = self.worst.max(severity);
        tell(&format!("hoistway tar: {text}"));
    }
}
