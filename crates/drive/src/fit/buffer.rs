//! The segments of the read-ahead buffer with which the model hits when the drive did.

use crate::command::Op;
use crate::profile::Profile;
use crate::recording::Record;

use super::requests::Requests;
use crate::replay::{ReplayError, replay};

/// The candidates: numbers of segments, and sectors of a segment.
const SEGMENTS: [u32; 5] = [1, 3, 8, 16, 32];
const SEGMENT_SECTORS: [u32; 5] = [64, 128, 256, 512, 1024];
/// The number of requests that the choice uses: enough for a decision, few enough to be fast.
const REPLAYED: usize = 2500;

/// A candidate configuration of the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BufferCandidate {
    pub(super) segments: u32,
    pub(super) segment_sectors: u32,
    /// True if read-ahead begins with the second of two sequential reads, and not with every read.
    pub(super) sequential: bool,
}

/// A candidate, and the number of reads that the model serves from the same source as the drive:
/// memory or media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChosenBuffer {
    pub(super) choice: BufferCandidate,
    pub(super) alike: usize,
    pub(super) of: usize,
}

/// The best candidate. `make` builds the profile of a candidate.
pub(super) fn choose<E: From<ReplayError>>(
    records: &[Record],
    requests: &Requests,
    make: impl Fn(BufferCandidate) -> Result<Profile, E>,
) -> Result<Option<ChosenBuffer>, E> {
    let records = &records[..records.len().min(REPLAYED)];
    let all = SEGMENTS.into_iter().flat_map(|n| SEGMENT_SECTORS.map(|sectors| (n, sectors)));
    let all = all.flat_map(|(segments, segment_sectors)| {
        [false, true].map(|sequential| BufferCandidate { segments, segment_sectors, sequential })
    });
    let mut best: Option<ChosenBuffer> = None;
    for choice in all {
        let predictions = replay(&make(choice)?, records)?;
        let (mut alike, mut of) = (0, 0);
        for (prediction, request) in predictions.iter().zip(&requests.all).filter(|(_, request)| request.op == Op::Read)
        {
            let ms = prediction.predicted_ns as f64 / 1e6;
            let hit = requests.read_hits.is_some_and(|hits| hits.take(request.sectors, ms));
            of += 1;
            alike += usize::from(hit == request.quick);
        }
        if best.is_none_or(|best| alike > best.alike) {
            best = Some(ChosenBuffer { choice, alike, of });
        }
    }
    Ok(best)
}
