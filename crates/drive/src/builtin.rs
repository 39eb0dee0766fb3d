//! The built-in profiles, embedded in the crate: as drive files, and in their compact form.

macro_rules! profiles {
    ($($name:literal),* $(,)?) => {
        /// The name of every built-in profile.
        pub(crate) const NAMES: &[&str] = &[$($name),*];
        /// File name and text of every built-in profile, in the order of `NAMES`. A constant apart,
        /// so that a program that only uses the compact form does not contain the texts.
        pub(crate) const TEXTS: &[(&str, &str)] =
            &[$((concat!($name, ".toml"), include_str!(concat!("../profiles/", $name, ".toml")))),*];
    };
}

/// The compact form of every built-in profile, in the order of `NAMES`.
pub(crate) const PACKED: &[u8] = include_bytes!("../profiles/packed.bin");

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
    TEXTS.get(index(name)?).copied()
}

/// The names of all built-in profiles.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().copied()
}

/// The place of the profile `name` in all lists.
pub(crate) fn index(name: &str) -> Option<usize> {
    NAMES.iter().position(|known| *known == name)
}
