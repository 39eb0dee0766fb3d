//! Options on requests: their directions, their order, and their sizes.

use super::{
    block_size::{BlockSize, block_range, block_size, block_split},
    distribution::{Distribution, distribution},
    option::{Subject, flag, option, switch},
};
use crate::{
    direction::{Directions, Rw},
    units::{UnitError, parse_size},
    values::{Fault, Value, put},
};

#[rustfmt::skip]
pub(crate) const SUBJECT: Subject = Subject {
    heading: "Requests",
    options: &[
        option("rw", &["readwrite"], |job, v| set_rw(&mut job.requests, v), "`read`, `write`, `randread`, `randwrite`, `rw`, `randrw`, `trim`, `randtrim`, `trimwrite`, `randtrimwrite`", "`read`", "The kind of requests. A number after a colon: requests at each random offset (`randread:8`), or bytes added to the offset after each sequential request (`write:4k`, `read:-8k`)."),
        option("rwmixread", &[], |job, v| put(&mut job.requests.rwmixread, v.percent()), "a percentage", "`50`", "The part of a mixed job (`rw`, `randrw`) that is reads."),
        option("rwmixwrite", &[], |job, v| put(&mut job.requests.rwmixread, v.percent().map(|writes| 100 - writes)), "a percentage", "`50`", "The part of a mixed job that is writes."),
        option("bs", &["blocksize"], |job, v| v.each(&mut job.blocks.bs, block_size), "a size, each", "`4k`", "The size of requests."),
        option("bsrange", &["blocksize_range"], |job, v| v.part(&v.text.replace('/', ",")).each(&mut job.blocks.bs, block_range), "`LOW-HIGH`, each", "none", "The size of requests, drawn from a range."),
        option("bssplit", &[], |job, v| v.each(&mut job.blocks.bs, block_split), "`SIZE/PERCENT:...`, each", "none", "The sizes of requests with their parts; blank percentages share the rest."),
        switch("bs_unaligned", &["blocksize_unaligned"], |job| &mut job.blocks.bs_unaligned, "`0`", "Sizes from a range are any number of bytes, not multiples of the smallest."),
        switch("bs_is_seq_rand", &[], |job| &mut job.blocks.bs_is_seq_rand, "`0`", "`bs` has the size of sequential requests before the comma and that of random ones after it."),
        option("ba", &["blockalign"], |job, v| v.each(&mut job.blocks.blockalign, |part| part.count(1)), "a size, each", "the smallest block size", "Random offsets are multiples of this."),
        option("rw_sequencer", &[], |job, v| put(&mut job.requests.rw_sequencer, v.word(&[("sequential", Sequencer::Sequential), ("identical", Sequencer::Identical)])), "`sequential`, `identical`", "`sequential`", "The offsets of the requests that follow one random offset (`randread:8`)."),
        option("percentage_random", &[], |job, v| v.each(&mut job.requests.percentage_random, |part| part.percent()), "a percentage, each", "`100`", "The part of a random job that is random; the rest is sequential."),
        option("random_distribution", &[], |job, v| put(&mut job.requests.random_distribution, distribution(v)), "`random`, `zipf:THETA`, `pareto:H`, `normal:DEVIATION`, `zoned:...`, `zoned_abs:...`", "`random`", "The distribution of random offsets. After another colon zipf, pareto and normal take the centre, 0 to 1. `normal` is as wide as fio's: its standard deviation is at least a twelfth of the blocks."),
        flag("norandommap", &[], |job| &mut job.requests.norandommap, "A block may be touched again before all have been touched once."),
        option("randseed", &[], |job, v| put(&mut job.requests.randseed, v.count(0).map(Some)), "a number", "from `--seed`", "The seed of the job's random numbers."),
    ],
};

/// The directions and the order of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Requests {
    /// Kind of requests: sequential or random, reads or writes.
    pub rw: Rw,
    /// The number after the colon of `rw=randread:8` (requests at one random offset) or of
    /// `rw=write:4k` and `rw=read:-8k` (bytes added to the offset after each sequential request).
    pub rw_modifier: Option<i64>,
    /// Offsets of the requests that follow one random offset.
    pub rw_sequencer: Sequencer,
    /// Percentage of a mixed job that is reads, 0 to 100. Default 50.
    pub rwmixread: u8,
    /// Percentage of a random job that is random, 0 to 100; the rest is sequential. Default 100.
    pub percentage_random: Directions<u8>,
    /// Distribution of random offsets.
    pub random_distribution: Distribution,
    /// True if a block may be touched twice before all have been touched once.
    pub norandommap: bool,
    /// The seed of the job's random numbers.
    pub randseed: Option<u64>,
}

/// The sizes of requests, and the blocks that random offsets are aligned to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// Size of requests. Default 4096.
    pub bs: Directions<BlockSize>,
    /// Multiples of which random offsets are, in bytes; 0 for the smallest block size.
    pub blockalign: Directions<u64>,
    /// True if sizes from a range are any number of bytes, not multiples of the smallest.
    pub bs_unaligned: bool,
    /// True if `bs` has the size of sequential requests before the comma, and that of random ones
    /// after it.
    pub bs_is_seq_rand: bool,
}

impl Default for Requests {
    fn default() -> Self {
        Requests {
            rw: Rw::Read,
            rw_modifier: None,
            rw_sequencer: Sequencer::Sequential,
            rwmixread: 50,
            percentage_random: Directions::both(100),
            random_distribution: Distribution::Random,
            norandommap: false,
            randseed: None,
        }
    }
}

impl Default for BlockSizes {
    fn default() -> Self {
        let bs = Directions::both(BlockSize::Fixed(4096));
        BlockSizes { bs, blockalign: Directions::both(0), bs_unaligned: false, bs_is_seq_rand: false }
    }
}

/// The offsets of the eight requests of `rw=randread:8`: fio's `rw_sequencer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequencer {
    /// Each request follows the one before.
    Sequential,
    /// All requests have the same offset.
    Identical,
}

const KINDS: &[(&str, Rw)] = &[
    ("read", Rw::Read),
    ("write", Rw::Write),
    ("trim", Rw::Trim),
    ("randread", Rw::Randread),
    ("randwrite", Rw::Randwrite),
    ("randtrim", Rw::Randtrim),
    ("rw", Rw::Readwrite),
    ("readwrite", Rw::Readwrite),
    ("randrw", Rw::Randrw),
    ("trimwrite", Rw::Trimwrite),
    ("randtrimwrite", Rw::Randtrimwrite),
];

/// Sets the value of `rw=`, with the number after its colon.
fn set_rw(requests: &mut Requests, v: Value) -> Result<(), Fault> {
    let (kind, modifier) =
        v.text.split_once(':').map_or((v.text, None), |(kind, rest)| (kind.trim(), Some(rest.trim())));
    let rw = v.part(kind).word(KINDS)?;
    let modifier = modifier.map(|modifier| rw_modifier(rw, v.part(modifier))).transpose()?;
    (requests.rw, requests.rw_modifier) = (rw, modifier);
    Ok(())
}

fn rw_modifier(rw: Rw, v: Value) -> Result<i64, Fault> {
    let (sign, digits) = v.text.strip_prefix('-').map_or((1, v.text), |digits| (-1, digits));
    let number = parse_size(digits, v.units.base)?;
    let number = i64::try_from(number)
        .map_err(|_| UnitError::TooLarge { text: v.text.into(), most: "9223372036854775807" })?
        * sign;
    if rw.is_random() && number < 1 {
        return Err(Fault::with_help(format!("{number} requests at each offset"), "at least 1"));
    }
    Ok(number)
}
