//! The unit of the offsets in traces that exist with more than one, such as those of Tencent, which
//! were redistributed with offsets in bytes.

/// Number of offsets from which on their common divisor decides.
pub const OFFSETS_MIN: usize = 1000;
/// Number of different offsets from which on a common divisor of 4096 decides.
const FEW_OFFSETS_MIN: usize = 50;
/// Largest plausible offset in sectors of 512 bytes: that of a volume of 4 TiB.
const SECTORS_MAX: u64 = 1 << 33;

/// Unit of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetUnit {
    /// Offsets count bytes.
    Bytes,
    /// Sectors, usually of 512 bytes.
    Sectors,
    /// Numbers of objects, which have no order: each gets a place on the disk.
    Objects,
}

impl OffsetUnit {
    /// All units.
    pub const ALL: [OffsetUnit; 3] = [OffsetUnit::Bytes, OffsetUnit::Sectors, OffsetUnit::Objects];

    /// Name of the unit on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            OffsetUnit::Bytes => "bytes",
            OffsetUnit::Sectors => "sectors",
            OffsetUnit::Objects => "objects",
        }
    }
}

impl std::str::FromStr for OffsetUnit {
    type Err = String;

    fn from_str(name: &str) -> Result<OffsetUnit, String> {
        OffsetUnit::ALL
            .into_iter()
            .find(|unit| unit.name() == name)
            .ok_or_else(|| format!("unknown unit `{name}`: expected bytes, sectors or objects"))
    }
}

/// Returns the unit of the offsets at the beginning of a trace, and what it was detected from.
///
/// Offsets in sectors are rarely multiples of 512. The offsets of one volume in some collections
/// are bytes plus the number of the volume, so that they share the remainder of a division by 512.
pub fn detect(offsets: &[u64]) -> (OffsetUnit, String) {
    let count = offsets.len();
    let greatest = offsets.iter().copied().max().unwrap_or(0);
    let divides = |divisor: u64| {
        let first = offsets.first().copied().unwrap_or(0) % divisor;
        offsets.iter().all(|offset| offset % divisor == first)
    };
    let different = {
        let mut sorted = offsets.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        sorted.len()
    };
    if count >= OFFSETS_MIN && different >= FEW_OFFSETS_MIN && divides(512) {
        return (OffsetUnit::Bytes, format!("the first {count} offsets differ by multiples of 512"));
    }
    if different >= FEW_OFFSETS_MIN && divides(4096) {
        return (OffsetUnit::Bytes, format!("the first {count} offsets differ by multiples of 4096"));
    }
    if greatest > SECTORS_MAX {
        let what = format!("the offset {greatest} would be beyond 4 TiB in sectors of 512 bytes");
        return (OffsetUnit::Bytes, what);
    }
    let few = if count < OFFSETS_MIN {
        format!("; {count} offsets are few for the decision, {OFFSETS_MIN} would be reliable")
    } else {
        String::new()
    };
    let why = if divides(512) {
        "are too few different ones to be taken for bytes"
    } else {
        "do not differ by multiples of 512"
    };
    (OffsetUnit::Sectors, format!("the first {count} offsets {why}{few}"))
}

/// Returns the sentence about a detected unit.
pub fn remark(unit: OffsetUnit, why: &str) -> String {
    format!("assuming offsets in {} ({why}); --offset-unit overrides this", unit.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_multiples_of_512_are_bytes_and_one_other_makes_them_sectors() {
        let mut offsets: Vec<u64> = (0..1000).map(|at| at * 512).collect();
        assert_eq!(detect(&offsets).0, OffsetUnit::Bytes);
        offsets[500] += 8;
        assert_eq!(detect(&offsets).0, OffsetUnit::Sectors);
        // Bytes plus the number of the volume.
        let offsets: Vec<u64> = (0..1000).map(|at| at * 512 + 1063).collect();
        assert_eq!(detect(&offsets).0, OffsetUnit::Bytes);
    }

    #[test]
    fn few_offsets_decide_only_as_multiples_of_4096_or_beyond_4_tib() {
        let multiples = |count: u64, unit: u64| (0..count).map(|at| at * unit).collect::<Vec<_>>();
        assert_eq!(detect(&multiples(60, 4096)).0, OffsetUnit::Bytes);
        assert_eq!(detect(&multiples(60, 512)).0, OffsetUnit::Sectors);
        assert_eq!(detect(&multiples(10, 4096)).0, OffsetUnit::Sectors);
        assert_eq!(detect(&[8, (1 << 33) + 1]).0, OffsetUnit::Bytes);
        // A single hot block says nothing, however often it is used.
        assert_eq!(detect(&[8192; 2000]).0, OffsetUnit::Sectors);
        assert!(detect(&[8]).1.ends_with("1 offsets are few for the decision, 1000 would be reliable"));
    }
}
