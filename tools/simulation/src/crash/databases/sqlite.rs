//! SQLite, whose clients are the database.

use std::path::Path;
use std::process::Command;

use super::clients::schema;
use super::programs::{command, output};

/// The programs that are needed.
pub const PROGRAMS: &[&str] = &["sqlite3", "stdbuf", "timeout"];
/// Takes the lock at the beginning, since two readers cannot both become writers.
pub const BEGIN: &str = "begin immediate";
pub const ACKNOWLEDGE: &str = ".print";

/// The journal of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journal {
    /// A write-ahead log.
    Wal,
    /// A rollback journal, removed by each commit.
    Delete,
}

/// A database in a file of a directory.
pub struct Sqlite {
    pub journal: Journal,
}

impl Sqlite {
    /// Creates the directory and the database.
    pub fn create(&self, at: &Path) -> Result<(), String> {
        std::fs::create_dir(at).map_err(|error| error.to_string())?;
        let mode = if self.journal == Journal::Wal { "wal" } else { "delete" };
        let set = output(self.client(at).arg(format!("pragma journal_mode = {mode};")))?;
        if set.trim() != mode {
            return Err(format!("the journal mode is {set:?}, and should be {mode}"));
        }
        output(self.client(at).arg(schema())).map(drop)
    }

    /// Returns a command that reads statements, or takes them as its next argument. Its commits are
    /// durable: with a rollback journal that takes a sync of the directory after its removal.
    pub fn client(&self, at: &Path) -> Command {
        let synchronous = if self.journal == Journal::Wal { "full" } else { "extra" };
        // Acknowledgements must not stay in a buffer.
        let mut client = command("stdbuf");
        client.args(["-oL", "sqlite3", "-batch", "-bail", "-init", "/dev/null", "-cmd", ".timeout 60000"]);
        client.args(["-cmd", &format!("pragma synchronous = {synchronous};"), "-cmd", "pragma cache_size = 20;"]);
        client.arg(at.join("database.sqlite"));
        client
    }

    /// Runs the checks of the database.
    pub fn check(&self, at: &Path) -> Result<(), String> {
        let found = output(self.client(at).arg("pragma integrity_check;"))?;
        if found.trim() == "ok" { Ok(()) } else { Err(format!("integrity_check: {found}")) }
    }
}
