//! The table of kernels that the module is built for and tested with.

use anyhow::{Context, Result};

use crate::architecture::Architecture;

/// A suite of Debian's archive that distributes kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Archive {
    /// Debian bookworm with its security updates.
    Bookworm,
    /// Debian trixie with its backports.
    TrixieBackports,
    /// None: the packages are files that a person downloaded.
    Files,
}

/// One of the two parts of Debian's archive, which have mirrors of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The distributions.
    Main,
    /// The security updates.
    Security,
}

impl Archive {
    /// The name of the directory of the archive's package lists.
    pub fn name(self) -> &'static str {
        match self {
            Archive::Bookworm => "bookworm",
            Archive::TrixieBackports => "trixie-backports",
            Archive::Files => "files",
        }
    }

    /// The suites with the archive's packages, and the part of the archive that each is in.
    pub fn suites(self) -> &'static [(Part, &'static str)] {
        match self {
            Archive::Bookworm => {
                &[(Part::Main, "bookworm"), (Part::Main, "bookworm-updates"), (Part::Security, "bookworm-security")]
            }
            Archive::TrixieBackports => {
                &[(Part::Main, "trixie"), (Part::Main, "trixie-backports"), (Part::Security, "trixie-security")]
            }
            Archive::Files => &[],
        }
    }

    /// The compiler in the build root for modules of the archive's kernels; None if the programs of
    /// Debian bookworm build them.
    pub fn build_root_compiler(self) -> Option<&'static str> {
        match self {
            Archive::Bookworm | Archive::Files => None,
            Archive::TrixieBackports => Some("gcc-14"),
        }
    }
}

/// A row of the table of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The name on the command line.
    pub name: &'static str,
    /// The architecture.
    pub architecture: Architecture,
    /// The suite that has its packages.
    pub archive: Archive,
    /// The beginning of the version in the names of the packages.
    pub series: &'static str,
    /// The end of the names of the packages.
    pub flavour: &'static str,
    /// The options of a kernel that is built from the package of the series' sources, beyond those
    /// of all built kernels; None if the kernel is a package.
    pub options: Option<&'static str>,
}

/// A kernel for x86-64.
const fn x86(name: &'static str, archive: Archive, series: &'static str, flavour: &'static str) -> Kernel {
    Kernel { name, architecture: Architecture::X86_64, archive, series, flavour, options: None }
}

/// A kernel of Debian bookworm for arm64.
const fn arm64(name: &'static str, series: &'static str, flavour: &'static str) -> Kernel {
    let (architecture, archive) = (Architecture::Arm64, Archive::Bookworm);
    Kernel { name, architecture, archive, series, flavour, options: None }
}

/// A kernel that is built from the sources of Debian bookworm.
const fn built(name: &'static str, series: &'static str, flavour: &'static str, options: &'static str) -> Kernel {
    let (architecture, archive) = (Architecture::X86_64, Archive::Bookworm);
    Kernel { name, architecture, archive, series, flavour, options: Some(options) }
}

/// The kernels. An archive keeps the packages of some series only for a time; `kernel fetch` names
/// those that it no longer has.
pub const KERNELS: &[Kernel] = &[
    x86("6.1", Archive::Bookworm, "6.1.", "amd64"),
    x86("6.1-cloud", Archive::Bookworm, "6.1.", "cloud-amd64"),
    x86("6.12", Archive::Bookworm, "6.12.", "amd64"),
    x86("6.12-cloud", Archive::Bookworm, "6.12.", "cloud-amd64"),
    x86("6.12-trixie", Archive::TrixieBackports, "6.12.", "amd64"),
    x86("7.2", Archive::TrixieBackports, "7.2.", "amd64"),
    x86("7.2-cloud", Archive::TrixieBackports, "7.2.", "cloud-amd64"),
    x86("7.3", Archive::TrixieBackports, "7.3.", "amd64"),
    arm64("6.1-arm64", "6.1.", "arm64"),
    arm64("6.12-arm64", "6.12.", "arm64"),
    arm64("6.12-arm64-16k", "6.12.", "arm64-16k"),
];

/// The kernels that find errors and measure locks. `kernel debug-kernel` builds them.
pub const DEBUG_KERNELS: &[Kernel] = &[
    built("6.12-kasan", "6.12.", "kasan", include_str!("../configs/kasan.config")),
    built("6.12-kcsan", "6.12.", "kcsan", include_str!("../configs/kcsan.config")),
    built("6.12-lockstat", "6.12.", "lockstat", include_str!("../configs/lockstat.config")),
];

/// Kernels with the block layer of a single queue, whose elevators include CFQ. Debian's archive no
/// longer has one; `guest --packages` takes their packages from a directory.
pub const OLD_KERNELS: &[Kernel] = &[x86("4.4", Archive::Files, "4.4.", "generic")];

/// The kernel that is tested if none is named: its flavour has all the devices.
pub const DEFAULT: &str = "6.12";

/// Finds a kernel of the tables by its name.
pub fn find(name: &str) -> Result<&'static Kernel> {
    let all = || KERNELS.iter().chain(DEBUG_KERNELS).chain(OLD_KERNELS);
    all().find(|kernel| kernel.name == name).with_context(|| {
        let names: Vec<&str> = all().map(|kernel| kernel.name).collect();
        format!("there is no kernel `{name}` in the table; it has {}", names.join(", "))
    })
}

/// The version of the newest kernel for which both an image and headers are in a list of package
/// names, such as `6.12.117+deb12`.
pub fn newest_version(kernel: &Kernel, packages: &[String]) -> Option<String> {
    let versions = |kind: &str| -> Vec<&str> {
        let suffix = format!("-{}", kernel.flavour);
        let names = packages.iter().filter_map(|name| name.strip_prefix(kind)?.strip_suffix(suffix.as_str()));
        let numbered = names.filter(|version| version.starts_with(kernel.series));
        // A version with a letter is that of another flavour, as in `6.1.0-56-rt`.
        numbered.filter(|version| !version.contains("-cloud") && !version.contains("-rt")).collect()
    };
    let headers = versions("linux-headers-");
    let images = versions("linux-image-").into_iter().filter(|version| headers.contains(version));
    images.max_by_key(|version| numbers(version)).map(str::to_owned)
}

/// The numbers in a version, for comparisons.
fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split(|character: char| !character.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_newest_version_is_the_largest_by_numbers_that_has_headers() {
        let packages = names(&[
            "linux-image-6.12.9+deb12-amd64",
            "linux-headers-6.12.9+deb12-amd64",
            "linux-image-6.12.117+deb12-amd64",
            "linux-headers-6.12.117+deb12-amd64",
            "linux-image-6.12.120+deb12-amd64",
        ]);
        let kernel = find("6.12").expect("it is in the table");
        assert_eq!(newest_version(kernel, &packages).as_deref(), Some("6.12.117+deb12"));
    }

    #[test]
    fn flavours_are_kept_apart() {
        let packages = names(&[
            "linux-image-6.1.0-57-cloud-amd64",
            "linux-headers-6.1.0-57-cloud-amd64",
            "linux-image-6.1.0-57-rt-amd64",
            "linux-headers-6.1.0-57-rt-amd64",
            "linux-image-6.1.0-56-amd64",
            "linux-headers-6.1.0-56-amd64",
        ]);
        let version = |name: &str| newest_version(find(name).expect("it is in the table"), &packages);
        assert_eq!(version("6.1").as_deref(), Some("6.1.0-56"));
        assert_eq!(version("6.1-cloud").as_deref(), Some("6.1.0-57"));
        assert_eq!(version("6.12"), None);
    }

    #[test]
    fn the_sizes_of_pages_are_kept_apart() {
        let packages = names(&[
            "linux-image-6.12.117+deb12-arm64-16k",
            "linux-headers-6.12.117+deb12-arm64-16k",
            "linux-image-6.12.115+deb12-arm64",
            "linux-headers-6.12.115+deb12-arm64",
        ]);
        let version = |name: &str| newest_version(find(name).expect("it is in the table"), &packages);
        assert_eq!(version("6.12-arm64").as_deref(), Some("6.12.115+deb12"));
        assert_eq!(version("6.12-arm64-16k").as_deref(), Some("6.12.117+deb12"));
        assert_eq!(version("6.12"), None);
    }

    #[test]
    fn the_names_of_the_table_differ_and_the_default_is_one_of_them() {
        let mut names: Vec<&str> = KERNELS.iter().chain(DEBUG_KERNELS).map(|kernel| kernel.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), KERNELS.len() + DEBUG_KERNELS.len());
        assert!(find(DEFAULT).is_ok());
        assert!(find("2.6.18").expect_err("it is not in the table").to_string().contains("6.12-cloud"));
    }
}
