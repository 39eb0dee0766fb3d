//! What went wrong on the way: told at the end, so that it does not get lost between the paths.

use std::collections::HashMap;

use hoistway_order::{Doing, Id, Kind, Problem, Tree, Trouble};

use crate::failure::{Exit, tell};

/// So many are told one by one.
const TOLD_MAX: usize = 1000;

/// All that went wrong.
pub struct Troubles {
    /// Whether a file system that does not tell where data lie is a failure.
    must_tell: bool,
    told: Vec<String>,
    count: usize,
    /// What could not be opened, and whether it is gone.
    shut: HashMap<Id, bool>,
    /// Files that are in memory alone.
    pub not_written: usize,
}

impl Troubles {
    pub fn new(must_tell: bool) -> Troubles {
        Troubles { must_tell, told: Vec::new(), count: 0, shut: HashMap::new(), not_written: 0 }
    }

    /// Takes one; what is no failure is said at once.
    pub fn take(&mut self, problem: Problem) {
        if problem.is_note() && !self.must_tell {
            return tell(&format!("note: {problem}"));
        }
        let unreadable = match problem.what {
            Trouble::Failed { doing: Doing::Open, .. } => true,
            _ => problem.is_gone(),
        };
        if let Some(id) = problem.id.filter(|_| unreadable) {
            self.shut.insert(id, problem.is_gone());
        }
        self.fail(problem.to_string());
    }

    /// Takes what went wrong with a name of the tree.
    pub fn fail_at(&mut self, tree: &Tree, id: Id, what: Trouble) {
        let mut path = Vec::new();
        tree.path_into(id, &mut path);
        self.take(Problem { path, id: Some(id), what });
    }

    /// Takes one that has no path of the tree.
    pub fn fail(&mut self, text: String) {
        self.count += 1;
        if self.told.len() < TOLD_MAX {
            self.told.push(text);
        }
    }

    /// Whether a name is not printed: what is gone, and a file that nobody here may read. A directory is there for whoever wants its name.
    pub fn leaves_out(&self, id: Id, kind: Kind) -> bool {
        self.shut.get(&id).is_some_and(|gone| *gone || kind == Kind::File)
    }

    /// Names are about to be called anew.
    pub fn forget(&mut self) {
        self.shut.clear();
    }

    /// Tells all of them, and how the command ended.
    pub fn tell(self) -> Exit {
        if self.not_written > 0 {
            tell(&format!(
                "note: {} not on the disk yet and stand{} by inode number before the others; --sync has such files written first",
                counted(self.not_written, "file is", "files are"),
                if self.not_written == 1 { "s" } else { "" }
            ));
        }
        for text in &self.told {
            tell(&format!("error: {text}"));
        }
        if self.count > self.told.len() {
            tell(&format!("error: and {} more", self.count - self.told.len()));
        }
        if self.count == 0 { Exit::Success } else { Exit::Failed }
    }
}

/// "1 file is", "2 files are".
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
