//! What `hoistway advise` says beside what `trace whatif` predicts and what real runs on the emulated drive measure.

mod case;
mod page;
mod runs;

use anyhow::{Context, Result, bail};

use crate::{tools, whatif};
use case::CASES;

/// Advises, predicts, measures; writes docs/advise-checked.md if told to.
pub fn run(words: &[&str]) -> Result<()> {
    let (mut seconds, mut write) = (15, false);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--write" => write = true,
            "--seconds" => {
                let value = words.next().with_context(|| format!("{word} needs a value"))?;
                seconds = value.parse().with_context(|| format!("{word} is `{value}`: it takes a number"))?;
            }
            _ => bail!("{word} is not known: there are --seconds S and --write"),
        }
    }
    if tools::find("fio").is_none() {
        bail!("fio is not installed: one of the cases is run by it");
    }
    let programs = whatif::programs(true)?;
    let folder = std::env::temp_dir().join(format!("hoistway-check-advise-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let outcomes: Result<Vec<_>> = CASES.iter().map(|case| runs::outcome(&programs, case, seconds, &folder)).collect();
    let _ = std::fs::remove_dir_all(&folder);
    let outcomes = outcomes?;
    let text = page::text(&outcomes, seconds);
    match write {
        true => page::write(&text),
        false => {
            println!("{text}");
            Ok(())
        }
    }
}
