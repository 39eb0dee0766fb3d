//! Faults of a disk: bad sectors, slow sectors and hangs.

/// The faults of a disk. The default has none;
/// [`Profile::with_faults`](crate::Profile::with_faults) adds them.
///
/// - A *bad* sector cannot be read: each attempt costs `retries` revolutions and ends in
///   [`Status::MediaError`](crate::Status). A write remaps it to a spare sector at the end of the
///   disk. The sector is good afterwards, at the cost of the seeks there and back. Without free
///   spare sectors the write fails as well.
/// - A *slow* sector is read after `retries` revolutions. A write to it has no extra cost.
/// - During a *hang* the disk begins and completes nothing. Commands in flight continue afterwards.
///
/// Besides the listed sectors, a random share of the physical sectors of 4 KiB is bad or slow.
#[derive(Debug, Clone, PartialEq)]
pub struct Faults {
    /// Ranges of bad sectors: the first sector and the number of sectors.
    pub bad_sectors: Vec<(u64, u32)>,
    /// Ranges of slow sectors: the first sector and the number of sectors.
    pub slow_sectors: Vec<(u64, u32)>,
    /// Probability that a physical sector of 4 KiB is bad, 0 to 1.
    pub bad_share: f64,
    /// Probability that a physical sector of 4 KiB is slow, 0 to 1.
    pub slow_share: f64,
    /// Seed of the random bad and slow sectors.
    pub seed: u64,
    /// Revolutions that an attempt to read costs, 0 to 1000.
    pub retries: u32,
    /// Number of spare sectors for remapping.
    pub spare_sectors: u32,
    /// Times at which the disk does not respond, in rising order.
    pub hangs: Vec<Hang>,
}

/// A period in which a disk does not respond, in ms since the start of its clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hang {
    /// The begin, 0 to 10^12.
    pub at_ms: f64,
    /// The duration, above 0; infinity for ever.
    pub for_ms: f64,
}

/// Reasons for which a profile cannot have given faults.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FaultsError {
    /// The drive is not a disk.
    #[error("drive `{drive}` is not a disk: only disks have faults")]
    NotADisk {
        /// The name of the profile.
        drive: String,
    },
    /// A value is out of range.
    #[error("`faults.{key}` is {value}: {expected}")]
    Value {
        /// The name of the field.
        key: &'static str,
        /// The invalid value, or the invalid entry of a list.
        value: String,
        /// The valid values.
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
    /// Default number of retries. Assumption: drives retry for a few tenths of a second.
    pub(crate) const RETRIES: u32 = 20;
    /// Default number of spare sectors. Assumption: drives have a few thousand.
    pub(crate) const SPARE_SECTORS: u32 = 4096;

    /// Returns true if there are no faults.
    pub fn is_empty(&self) -> bool {
        let sectors = self.bad_sectors.is_empty() && self.slow_sectors.is_empty();
        sectors && self.bad_share == 0.0 && self.slow_share == 0.0 && self.hangs.is_empty()
    }

    /// The first field that is out of range on a disk of `capacity_sectors`.
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
                format!("hangs do not overlap, and the previous one ends at {free_from_ms} ms")
            } else {
                free_from_ms = hang.at_ms + hang.for_ms;
                continue;
            };
            return Some((FaultsField::Hang(index), FaultsError::Value { key: "hangs", value, expected }));
        }
        None
    }
}
