//! The drives of the arena.

/// How fast a drive is, which decides the length of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveClass {
    /// A disk, or several: some hundred requests a second.
    Disk,
    /// Flash, or a volume on it: thousands of requests a second and more.
    Flash,
}

/// A drive of the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drive {
    /// The name of its built-in profile.
    pub name: &'static str,
    /// Its class.
    pub class: DriveClass,
    /// True if it is kept for the final test of an elevator.
    pub is_test: bool,
}

impl Drive {
    /// All drives, in the order of tables: one arm first, then several, then flash.
    pub const ALL: &[Drive] = &[
        Drive::new("sata-7200-2006", DriveClass::Disk),
        Drive::new("scsi-15k-73", DriveClass::Disk),
        Drive::new("cmr-8tb", DriveClass::Disk),
        Drive::new("laptop-5400", DriveClass::Disk).of_test(),
        Drive::new("array-8x15k", DriveClass::Disk),
        Drive::new("ssd-fiops", DriveClass::Flash),
        Drive::new("ssd-nvme-tlc", DriveClass::Flash),
        Drive::new("samsung-980-pro", DriveClass::Flash),
        Drive::new("cloud-gp3", DriveClass::Flash).of_test(),
    ];

    const fn new(name: &'static str, class: DriveClass) -> Drive {
        Drive { name, class, is_test: false }
    }

    const fn of_test(self) -> Drive {
        Drive { is_test: true, ..self }
    }

    /// The drive of this name.
    pub fn from_name(name: &str) -> Option<Drive> {
        Drive::ALL.iter().copied().find(|drive| drive.name == name)
    }
}

impl DriveClass {
    /// All classes.
    pub const ALL: [DriveClass; 2] = [DriveClass::Disk, DriveClass::Flash];

    /// The length of a run in ms of virtual time: about a thousand requests of the slowest disk,
    /// several ten thousand of flash.
    pub const fn runtime_ms(self) -> u64 {
        match self {
            DriveClass::Disk => 15_000,
            DriveClass::Flash => 1_000,
        }
    }
}
