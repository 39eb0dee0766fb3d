//! What is wrong with a disk: sectors that cannot be read, or only after retries, and times at which it does not answer.

/// The faults of a disk. The default has none; [`Profile::with_faults`](crate::Profile::with_faults) switches them on.
///
/// - A *bad* sector cannot be read: each attempt costs `retries` revolutions and ends in [`Status::MediaError`](crate::Status). Writing to it
///   puts it into a spare sector at the end of the disk, as long as there are spares: from then on it is sound, and costs the way there and
///   back. Without spares left the write fails alike.
/// - A *slow* sector is read after `retries` revolutions. Writing to it costs nothing more.
/// - During a *hang* nothing begins and nothing is completed; what was under way goes on afterwards.
///
/// Beside those that are named, sectors may be bad or slow by chance: a share of the physical sectors of 4 KiB, chosen by `seed`.
#[derive(Debug, Clone, PartialEq)]
pub struct Faults {
    /// First sector, and how many.
    pub bad_sectors: Vec<(u64, u32)>,
    /// First sector, and how many.
    pub slow_sectors: Vec<(u64, u32)>,
    /// The share of the physical sectors of 4 KiB that are bad by chance, 0 to 1.
    pub bad_share: f64,
    /// The share of the physical sectors of 4 KiB that are slow by chance, 0 to 1.
    pub slow_share: f64,
    /// Which those are.
    pub seed: u64,
    /// Revolutions for which the drive tries again, 0 to 1000.
    pub retries: u32,
    /// How many sectors can be put elsewhere.
    pub spare_sectors: u32,
    /// When the disk does not answer.
    pub hangs: Vec<Hang>,
}

/// A time during which a disk does not answer, in ms from the start of its clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hang {
    /// When it begins, 0 to 10^12.
    pub at_ms: f64,
    /// How long it lasts, more than 0; infinite: for ever.
    pub for_ms: f64,
}

/// Why a profile cannot have these faults.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FaultsError {
    /// Only disks have these faults.
    #[error("drive `{drive}` is no disk: only disks have faults")]
    NotADisk {
        /// The profile's name.
        drive: String,
    },
    /// A value cannot be.
    #[error("`faults.{key}` is {value}: {expected}")]
    Value {
        /// The field.
        key: &'static str,
        /// Its value, or the part of it that cannot be.
        value: String,
        /// What would be right.
        expected: String,
    },
}

/// The field, and for a list the index, of a value that is out of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultsField {
    BadSectors(usize),
    SlowSectors(usize),
    BadShare,
    SlowShare,
    Retries,
    Hang(usize),
}

impl Default for Faults {
    fn default() -> Faults {
        Faults {
            bad_sectors: Vec::new(),
            slow_sectors: Vec::new(),
            bad_share: 0.0,
            slow_share: 0.0,
            seed: 1,
            retries: Faults::RETRIES,
            spare_sectors: Faults::SPARE_SECTORS,
            hangs: Vec::new(),
        }
    }
}

impl Faults {
    /// Assumed: drives retry for some tenths of a second at most.
    pub(crate) const RETRIES: u32 = 20;
    /// Assumed: drives have some thousands.
    pub(crate) const SPARE_SECTORS: u32 = 4096;

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        let sectors = self.bad_sectors.is_empty() && self.slow_sectors.is_empty();
        sectors && self.bad_share == 0.0 && self.slow_share == 0.0 && self.hangs.is_empty()
    }

    /// The first value that a disk of `capacity_sectors` cannot have.
    pub(crate) fn problem(&self, capacity_sectors: u64) -> Option<(FaultsField, FaultsError)> {
        let error =
            |key, value: String, expected: &str| FaultsError::Value { key, value, expected: expected.to_string() };
        let beyond = |(sector, count): (u64, u32)| {
            count == 0 || sector.checked_add(u64::from(count)).is_none_or(|end| end > capacity_sectors)
        };
        let within = format!(
            "a first sector and how many, at least 1, within sectors 0 to {}",
            capacity_sectors.saturating_sub(1)
        );
        let named = |key, field: fn(usize) -> FaultsField, ranges: &[(u64, u32)]| {
            let index = ranges.iter().position(|range| beyond(*range))?;
            let (sector, count) = ranges.get(index)?;
            Some((field(index), error(key, format!("[{sector}, {count}]"), &within)))
        };
        let share = |key, field, share: f64| {
            let is_share = (0.0..=1.0).contains(&share);
            (!is_share).then(|| (field, error(key, share.to_string(), "0 to 1")))
        };
        let retries = || {
            let many = self.retries > 1000;
            many.then(|| (FaultsField::Retries, error("retries", self.retries.to_string(), "0 to 1000 revolutions")))
        };
        named("bad_sectors", FaultsField::BadSectors, &self.bad_sectors)
            .or_else(|| named("slow_sectors", FaultsField::SlowSectors, &self.slow_sectors))
            .or_else(|| share("bad_share", FaultsField::BadShare, self.bad_share))
            .or_else(|| share("slow_share", FaultsField::SlowShare, self.slow_share))
            .or_else(retries)
            .or_else(|| self.impossible_hang())
    }

    fn impossible_hang(&self) -> Option<(FaultsField, FaultsError)> {
        let mut free_from_ms = 0.0;
        for (index, hang) in self.hangs.iter().enumerate() {
            let value = format!("{} ms from {} ms on", hang.for_ms, hang.at_ms);
            let expected = if !(0.0..=1e12).contains(&hang.at_ms) {
                "a hang begins at 0 to 1000000000000 ms".to_string()
            } else if hang.for_ms.is_nan() || hang.for_ms <= 0.0 {
                "a hang lasts more than 0 ms; `inf` is for ever".to_string()
            } else if hang.at_ms < free_from_ms {
                format!("hangs follow each other, and the one before ends at {free_from_ms} ms")
            } else {
                free_from_ms = hang.at_ms + hang.for_ms;
                continue;
            };
            return Some((FaultsField::Hang(index), FaultsError::Value { key: "hangs", value, expected }));
        }
        None
    }
}
