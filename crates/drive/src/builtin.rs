//! The built-in profiles, embedded in the crate.

macro_rules! profiles {
    ($($name:literal),* $(,)?) => {
        /// Name, file name and text of every built-in profile.
        const PROFILES: &[(&str, &str, &str)] =
            &[$(($name, concat!($name, ".toml"), include_str!(concat!("../profiles/", $name, ".toml")))),*];
    };
}

/// The drive of every command that simulates one, unless the user or a device of the machine
/// determines it: a current SATA SSD.
pub const DEFAULT_DRIVE: &str = "ssd-sata-consumer";

profiles!(
    "slide-5400",
    "slide-7200",
    "slide-15000",
    "laptop-5400",
    "ata-7200-30",
    "sata-7200-2006",
    "st2000dm006",
    "cmr-4tb",
    "cmr-8tb",
    "cmr-20tb",
    "scsi-10k-300",
    "scsi-15k-73",
    "sas-15k-450",
    "cheetah15k5_146",
    "wd_4tb_7200",
    "maxtor_atlas10kV_300",
    "cheetah9LP",
    "cheetah4LP",
    "atlas10k",
    "atlas_III",
    "ibm18es",
    "barracuda_st32171w",
    "hp_c3323a",
    "hp_c2490a",
    "dec_rz26",
    "st41601n",
    "ssd-fiops",
    "array-8x15k",
    "ssd-sata-consumer",
    "ssd-sata-enterprise",
    "ssd-nvme-tlc",
    "ssd-nvme-tlc-mixed",
    "samsung-980-pro",
    "cloud-gp2",
    "cloud-gp3",
    "null",
);

/// File name and text of the profile `name`.
pub(crate) fn text(name: &str) -> Option<(&'static str, &'static str)> {
    PROFILES.iter().find(|profile| profile.0 == name).map(|profile| (profile.1, profile.2))
}

/// The names of all built-in profiles.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PROFILES.iter().map(|profile| profile.0)
}
