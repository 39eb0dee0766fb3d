//! The exit statuses of all commands: one table, from which the help texts and the manual pages
//! are made. `failure.rs` has the statuses as values.

/// An exit status, or a word for several, and its meaning.
pub type Status = (&'static str, &'static str);

const SUCCESS: Status = ("0", "success");
const FAILURE: Status = ("1", "failure");
const USAGE: Status = ("2", "invalid command line");
const CONFIGURATION: Status = ("2", "invalid command line or configuration");
const INTERRUPTED: Status = ("130", "interrupted");

/// Statuses of a command without a row in [`COMMANDS`] and without a parent that has one.
const GENERAL: &[Status] = &[SUCCESS, FAILURE, USAGE, INTERRUPTED];

/// The statuses of the program, and of the commands that differ from [`GENERAL`], by manual page.
const COMMANDS: &[(&str, &[Status])] = &[
    (
        "hoistway",
        &[
            SUCCESS,
            FAILURE,
            ("2", "invalid command line, or invalid configuration of `serve` or `mount`"),
            ("3", "`conform` or `serve --check` found a difference"),
            INTERRUPTED,
        ],
    ),
    (
        "hoistway-advise",
        &[
            SUCCESS,
            ("1", "no advice is possible (also if the model misses the trace by more than 20 %)"),
            USAGE,
            INTERRUPTED,
        ],
    ),
    (
        "hoistway-arena",
        &[("0", "all runs have figures"), ("1", "a run has an error or the arena failed"), USAGE, INTERRUPTED],
    ),
    (
        "hoistway-conform",
        &[
            ("0", "all scenarios are identical"),
            ("1", "a file could not be replayed"),
            USAGE,
            ("3", "a scenario differs"),
        ],
    ),
    ("hoistway-ctl", &[SUCCESS, FAILURE, USAGE]),
    (
        "hoistway-devices-set",
        &[("0", "all values were set (rounded values are reported)"), ("1", "no value was set"), USAGE],
    ),
    (
        "hoistway-ionice",
        &[
            SUCCESS,
            ("1", "failure, also an invalid command line"),
            ("126", "the command cannot be run"),
            ("127", "there is no such command"),
            ("otherwise", "that of the command"),
        ],
    ),
    (
        "hoistway-mount",
        &[
            ("0", "the mount was unmounted"),
            ("1", "failure, or the mount was detached while files were open"),
            CONFIGURATION,
        ],
    ),
    ("hoistway-order", &[SUCCESS, ("1", "a name was left out or an operation failed"), USAGE]),
    (
        "hoistway-serve",
        &[
            ("0", "all requests were completed and all devices flushed"),
            ("1", "failure, or the server could not complete or flush everything"),
            CONFIGURATION,
            ("3", "--check found a difference"),
            ("otherwise", "with --run, that of the command"),
        ],
    ),
    (
        "hoistway-sweep",
        &[
            ("0", "all points have figures"),
            ("1", "a point has an error instead of figures or the sweep failed"),
            USAGE,
            INTERRUPTED,
        ],
    ),
    (
        "hoistway-tar",
        &[
            SUCCESS,
            ("1", "files changed, shrank or vanished during the run"),
            ("2", "the archive lacks a file, or there is no archive, or the command line is invalid"),
            ("129", "SIGHUP"),
            ("130", "Ctrl-C"),
            ("141", "a closed pipe"),
            ("143", "SIGTERM"),
        ],
    ),
    (
        "hoistway-trace-record",
        &[
            SUCCESS,
            ("1", "failure, also if nothing was recorded or events were dropped"),
            USAGE,
            ("otherwise", "that of COMMAND"),
        ],
    ),
    (
        "hoistway-trace-replay",
        &[SUCCESS, ("1", "failure, also if a request failed or the target was refused"), USAGE, INTERRUPTED],
    ),
    (
        "hoistway-trace-whatif",
        &[SUCCESS, ("1", "failure, also if the model misses the recording by more than 20 %"), USAGE, INTERRUPTED],
    ),
];

/// Returns the statuses of the command with this manual page: its own, else those of its parent.
pub fn of(page: &str) -> &'static [Status] {
    let own = |page: &str| COMMANDS.iter().find(|(name, _)| *name == page).map(|(_, statuses)| *statuses);
    let parent = page.rsplit_once('-').map(|(parent, _)| parent).filter(|parent| *parent != "hoistway");
    own(page).or_else(|| own(parent?)).unwrap_or(GENERAL)
}

/// Returns a help text with the statuses of the command as its last paragraph.
pub fn appended(help: &str, page: &str) -> String {
    let statuses: Vec<String> = of(page).iter().map(|(status, meaning)| format!("{status} {meaning}")).collect();
    format!("{help}\n\n{PARAGRAPH} {}.", statuses.join("; "))
}

/// The first words of the paragraph with the statuses.
pub const PARAGRAPH: &str = "Exit codes:";

/// The manual pages of the table.
#[cfg(test)]
pub fn pages() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|(page, _)| *page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subcommand_has_the_statuses_of_its_parent_unless_it_has_its_own() {
        assert_eq!(of("hoistway-ctl-get"), of("hoistway-ctl"));
        assert_eq!(of("hoistway-ctl"), [SUCCESS, FAILURE, USAGE]);
        assert_eq!(of("hoistway-trace-info"), GENERAL);
        assert_eq!(of("hoistway-compare"), GENERAL, "not those of the program");
        assert_eq!(of("hoistway-serve")[2], CONFIGURATION);
    }

    #[test]
    fn the_paragraph_of_a_help_text_lists_the_statuses() {
        let help = appended("Text.", "hoistway-ctl");
        assert_eq!(help, "Text.\n\nExit codes: 0 success; 1 failure; 2 invalid command line.");
    }
}
