//! The options that all crash tests have, and the exit status of their programs.

use std::path::PathBuf;
use std::process::ExitCode;

/// The options that all crash tests have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrashOptions {
    /// The program that is killed.
    pub hoistway: PathBuf,
    /// Crashes after those over disks with planted faults.
    pub rounds: u64,
    /// The seed of all random choices.
    pub seed: u64,
}

impl CrashOptions {
    /// Parses arguments: options, each with a value. `own` takes an option of one test alone with
    /// its value, and returns false for an unknown option; `names` lists those options.
    ///
    /// # Errors
    /// An unknown option, a missing value, or an invalid one.
    pub fn parse(
        arguments: impl IntoIterator<Item = String>,
        names: &[&str],
        mut own: impl FnMut(&str, &str) -> Result<bool, String>,
    ) -> Result<CrashOptions, String> {
        let mut options = CrashOptions { hoistway: "hoistway".into(), rounds: 200, seed: 1 };
        let mut words = arguments.into_iter();
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("{word} {value:?}: a number is needed"));
            match word.as_str() {
                "--hoistway" => options.hoistway = value.into(),
                "--rounds" => options.rounds = number()?,
                "--seed" => options.seed = number()?,
                _ if own(&word, &value)? => {}
                _ => {
                    let all = [&["--hoistway", "--rounds", "--seed"], names].concat().join(", ");
                    return Err(format!("{word:?} is no option: there are {all}"));
                }
            }
        }
        Ok(options)
    }
}

/// Prints an error, and returns the exit status of the program.
pub fn exit_code(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(CrashOptions, String), String> {
        let mut engine = String::new();
        let words = text.split_whitespace().map(str::to_owned);
        let options = CrashOptions::parse(words, &["--engine"], |word, value| {
            engine.push_str(value);
            Ok(word == "--engine")
        })?;
        Ok((options, engine))
    }

    #[test]
    fn shared_options_and_those_of_one_test_are_parsed() {
        let expected = CrashOptions { hoistway: "h".into(), rounds: 3, seed: 1 };
        assert_eq!(parse("--rounds 3 --engine threads --hoistway h"), Ok((expected, "threads".to_owned())));
        assert_eq!(parse("--rounds").unwrap_err(), "--rounds needs a value");
        assert_eq!(parse("--seed x").unwrap_err(), "--seed \"x\": a number is needed");
        assert_eq!(
            parse("--of x").unwrap_err(),
            "\"--of\" is no option: there are --hoistway, --rounds, --seed, --engine"
        );
    }
}
