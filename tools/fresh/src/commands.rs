//! The commands that run in a fresh machine, read from README.md word by word.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use hoistway_workspace::console::{Block, blocks};

/// The document whose commands run.
const DOCUMENT: &str = "README.md";
/// The checks of continuous integration.
const CHECKS: &str = ".ci/run";
/// The program of the lines that run in the clone. `cargo xtask check-dist` runs those that install
/// a package.
const PROGRAM: &str = "cargo ";

/// A command.
#[derive(Debug)]
pub(crate) enum Command {
    /// A line of the shell, which runs in the clone.
    Line {
        /// The document with its line.
        place: String,
        /// The line without its comment.
        text: String,
    },
    /// A session whose output is compared.
    Session {
        /// The document.
        document: &'static str,
        /// The session.
        block: Block,
    },
}

impl Command {
    /// The document with its line.
    pub(crate) fn place(&self) -> String {
        match self {
            Command::Line { place, .. } => place.clone(),
            Command::Session { document, block } => format!("{document}:{}", block.line),
        }
    }

    /// The command as it is printed: of a session the first line of each command.
    pub(crate) fn shown(&self) -> String {
        match self {
            Command::Line { text, .. } => text.clone(),
            Command::Session { block, .. } => {
                let first = |command: &str| command.lines().next().unwrap_or_default().to_owned();
                block.steps.iter().map(|step| first(&step.command)).collect::<Vec<_>>().join(" && ")
            }
        }
    }
}

/// Returns the commands of README.md, and then the checks.
pub(crate) fn all(repository: &Path) -> Result<Vec<Command>> {
    let text = fs::read_to_string(repository.join(DOCUMENT)).with_context(|| format!("cannot read {DOCUMENT}"))?;
    let mut commands = of_document(&text)?;
    commands.push(Command::Line { place: CHECKS.to_owned(), text: CHECKS.to_owned() });
    Ok(commands)
}

/// The commands of the document: lines of indented blocks that start cargo, and the sessions that
/// are not run elsewhere. Without commands of either kind the text is not the one that is meant.
fn of_document(text: &str) -> Result<Vec<Command>> {
    let mut commands: Vec<Command> = indented(text)
        .filter(|(_, line)| line.starts_with(PROGRAM))
        .map(|(number, line)| Command::Line { place: format!("{DOCUMENT}:{number}"), text: line.to_owned() })
        .collect();
    let lines = commands.len();
    let sessions = blocks(text).into_iter().filter(|block| !block.no_run && block.system.is_none());
    commands.extend(sessions.map(|block| Command::Session { document: DOCUMENT, block }));
    if lines == 0 || commands.len() == lines {
        bail!("{DOCUMENT} has no indented line that starts with `{PROGRAM}`, or no console block");
    }
    Ok(commands)
}

/// The lines of the indented blocks outside fences, with their numbers and without their comments.
fn indented(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        is_fenced ^= line.starts_with("```");
        let code = line.strip_prefix("    ").filter(|_| !is_fenced)?;
        let end = code.find(" #").unwrap_or(code.len());
        Some((index + 1, code[..end].trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# Title

    apt install ./a.deb          # Debian
    cargo run --release          # a demonstration

```sh
    cargo publish
```

```console needs=fio varies
$ cat > a <<'END'
> x
> END
$ hoistway compare a
```

```console no-run
$ false
```
";

    #[test]
    fn lines_lose_their_comments_and_sessions_keep_their_needs() {
        let commands = of_document(TEXT).expect("both kinds");
        let shown: Vec<_> = commands.iter().map(|command| (command.place(), command.shown())).collect();
        let expected =
            [("README.md:4", "cargo run --release"), ("README.md:10", "cat > a <<'END' && hoistway compare a")];
        assert_eq!(shown, expected.map(|(place, text)| (place.to_owned(), text.to_owned())));
        let Command::Session { block, .. } = &commands[1] else { panic!("no session") };
        assert_eq!(block.needs, ["fio"]);
    }

    #[test]
    fn a_text_without_commands_is_refused() {
        assert!(of_document("    cargo test\n").is_err() && of_document("```console\n$ true\n```\n").is_err());
    }

    #[test]
    fn the_readme_installs_tests_and_compares() {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let shown: Vec<String> = all(&repository).expect("README.md").iter().map(Command::shown).collect();
        assert_eq!(shown.first().map(String::as_str), Some("cargo install --locked --path crates/cli"));
        assert_eq!(shown.last().map(String::as_str), Some(CHECKS));
        for wanted in ["cargo xtask test", "hoistway compare"] {
            assert!(shown.iter().any(|command| command.starts_with(wanted)), "{wanted}: {shown:?}");
        }
    }
}
