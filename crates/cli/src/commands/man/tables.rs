//! Files of the commands, and related pages and documents: tables for the manual pages. The exit
//! statuses are in `exit_status.rs`.

/// The files of a command.
struct Files {
    /// The manual pages that list the files.
    pages: &'static [&'static str],
    /// The path of each file, and its purpose.
    files: &'static [(&'static str, &'static str)],
}

const FILES: &[Files] = &[
    Files {
        pages: &["hoistway"],
        files: &[(
            "hoistway-report.html",
            "The report that `hoistway` without a command writes into the working directory.",
        )],
    },
    Files {
        pages: &["hoistway-serve"],
        files: &[
            ("/etc/hoistway.toml", "The configuration that hoistway.service reads (--config)."),
            ("$XDG_RUNTIME_DIR/hoistway.sock", "The default socket for clients."),
            (
                "/run/hoistway.sock",
                "The default socket for clients without $XDG_RUNTIME_DIR, and that of hoistway.socket.",
            ),
        ],
    },
    Files {
        pages: &["hoistway-serve", "hoistway-ctl", "hoistway-top"],
        files: &[
            ("$XDG_RUNTIME_DIR/hoistway-control.sock", "The first default path of the control socket."),
            ("/run/hoistway-control.sock", "The second default path of the control socket."),
            ("/run/hoistway/control.sock", "The control socket of hoistway.service."),
        ],
    },
    Files {
        pages: &["hoistway-serve"],
        files: &[
            ("/usr/lib/systemd/system/hoistway.service", "The unit of the server."),
            ("/usr/lib/systemd/system/hoistway.socket", "The unit of its socket."),
            ("/usr/share/hoistway/examples/serve", "Examples of configurations."),
        ],
    },
    Files {
        pages: &["hoistway-mount"],
        files: &[
            (
                "/etc/hoistway-mount/NAME.toml",
                "The configuration that hoistway-mount@NAME.service reads (--config). NAME is the path, as `systemd-escape --path` prints it.",
            ),
            ("/run/hoistway-mount/NAME.sock", "The control socket of hoistway-mount@NAME.service."),
            ("/usr/lib/systemd/system/hoistway-mount@.service", "The unit of a mount."),
            ("/usr/share/hoistway/examples/mount", "Examples of configurations."),
        ],
    },
    Files {
        pages: &["hoistway-devices", "hoistway-devices-set", "hoistway-devices-forget"],
        files: &[("/etc/udev/rules.d", "The directory of the rules that --persist writes.")],
    },
    Files {
        pages: &["hoistway-trace-record"],
        files: &[("/run/hoistway", "The directory of the journals of changed kernel settings, for --undo.")],
    },
    Files { pages: &["hoistway-compare"], files: &[("/usr/share/hoistway/examples/jobs", "Examples of job files.")] },
    Files {
        pages: &["hoistway-advise"],
        files: &[("/usr/share/hoistway/examples/advise", "Examples of descriptions of other machines.")],
    },
];

/// References of a command.
struct References {
    page: &'static str,
    /// Manual pages, each with its section.
    pages: &'static [(&'static str, u8)],
    /// Documents in `docs`, without the ending.
    documents: &'static [&'static str],
}

/// Shorthand for a row of [`REFERENCES`].
const fn row(
    page: &'static str,
    pages: &'static [(&'static str, u8)],
    documents: &'static [&'static str],
) -> References {
    References { page, pages, documents }
}

const REFERENCES: &[References] = &[
    row("hoistway", &[], &["README", "first-comparison", "glossary", "limitations"]),
    row("hoistway-advise", &[("hoistway-compare", 1), ("hoistway-devices", 1)], &["advise", "which-scheduler"]),
    row("hoistway-arena", &[("hoistway-sweep", 1)], &["arena"]),
    row(
        "hoistway-compare",
        &[("hoistway-drives", 1), ("hoistway-elevators", 1), ("fio", 1)],
        &["compare", "job-files"],
    ),
    row("hoistway-conform", &[], &["conformance"]),
    row("hoistway-ctl", &[("hoistway-serve", 1), ("hoistway-mount", 1), ("hoistway-top", 1)], &["serve-control"]),
    row("hoistway-devices", &[("hoistway-advise", 1), ("hoistway-ionice", 1), ("udev", 7)], &["devices"]),
    row("hoistway-drives", &[("hoistway-compare", 1)], &["drives", "drive-files"]),
    row("hoistway-elevators", &[("hoistway-compare", 1)], &["elevators"]),
    row("hoistway-ionice", &[("hoistway-devices", 1), ("ionice", 1), ("ioprio_set", 2)], &["devices"]),
    row(
        "hoistway-mount",
        &[("hoistway-ctl", 1), ("hoistway-top", 1), ("hoistway-ionice", 1), ("fuse", 4), ("systemd-escape", 1)],
        &["mount", "mount-files"],
    ),
    row("hoistway-order", &[("hoistway-tar", 1), ("xargs", 1)], &["order"]),
    row("hoistway-reproduce", &[], &["reproduced"]),
    row(
        "hoistway-serve",
        &[("hoistway-ctl", 1), ("hoistway-top", 1), ("hoistway-mount", 1), ("nbd-client", 8), ("systemd.socket", 5)],
        &["serve", "serve-config", "serve-control", "monitoring"],
    ),
    row("hoistway-sweep", &[("hoistway-compare", 1), ("hoistway-arena", 1)], &["sweeps"]),
    row("hoistway-tar", &[("hoistway-order", 1), ("tar", 1)], &["tar", "archive-a-million-files"]),
    row("hoistway-top", &[("hoistway-ctl", 1), ("hoistway-serve", 1), ("hoistway-mount", 1)], &["monitoring"]),
    row("hoistway-trace", &[("blktrace", 8), ("trace-cmd", 1)], &["trace", "trace-tutorial", "trace-formats"]),
    row("hoistway-trace-whatif", &[("hoistway-advise", 1)], &["whatif"]),
];

/// Returns the files that a page lists, each with its purpose.
pub fn files(page: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    FILES.iter().filter(move |files| files.pages.contains(&page)).flat_map(|files| files.files).copied()
}

/// Returns the pages to which a page refers, each with its section: the page of the command above
/// it first.
pub fn related(page: &str) -> Vec<(&str, u8)> {
    let above = page.rsplit_once('-').map(|(above, _)| (above, 1));
    let named = REFERENCES.iter().filter(|row| row.page == page).flat_map(|row| row.pages).copied();
    above.into_iter().chain(named).collect()
}

/// Returns the documents to which a page refers, as names in `docs` without the ending.
pub fn documents(page: &str) -> impl Iterator<Item = &'static str> {
    REFERENCES.iter().filter(move |row| row.page == page).flat_map(|row| row.documents).copied()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::{Command, CommandFactory};

    use super::*;
    use crate::cli::Cli;
    use crate::exit_status;

    /// Collects the names of all pages.
    fn pages(command: &Command, found: &mut Vec<String>) {
        found.push(command.get_display_name().unwrap_or(command.get_name()).to_owned());
        command.get_subcommands().for_each(|inner| pages(inner, found));
    }

    #[test]
    fn the_tables_name_pages_and_documents_that_exist() {
        let mut command = Cli::command();
        command.build();
        let mut all = Vec::new();
        pages(&command, &mut all);
        let exists = |page: &str| all.iter().any(|name| name == page);
        let named = FILES.iter().flat_map(|files| files.pages).copied().chain(REFERENCES.iter().map(|row| row.page));
        let referred = REFERENCES.iter().flat_map(|row| row.pages).map(|(page, _)| *page);
        let own = referred.filter(|page| page.starts_with("hoistway"));
        for page in named.chain(own).chain(exit_status::pages()) {
            assert!(exists(page), "{page}");
        }
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        for document in REFERENCES.iter().flat_map(|row| row.documents) {
            assert!(docs.join(format!("{document}.md")).is_file(), "{document}");
        }
    }
}
