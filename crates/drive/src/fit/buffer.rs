//! The read-ahead buffer: with which segments the model hits when the drive did.

use crate::command::Op;
use crate::profile::Profile;
use crate::recording::Record;

use super::requests::Requests;
use crate::replay::{ReplayError, replay};

/// Segments, and sectors in each, that are tried.
const SEGMENTS: [u32; 5] = [1, 3, 8, 16, 32];
const SEGMENT_SECTORS: [u32; 5] = [64, 128, 256, 512, 1024];
/// Requests that the choice is made with: enough to tell, and soon done.
const REPLAYED: usize = 2500;

/// Segments, and when they are filled ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) segments: u32,
    pub(super) segment_sectors: u32,
    /// Reading ahead begins with the second of two reads in a row, not with every read.
    pub(super) sequential: bool,
}

/// A choice, and how many reads the model with it serves as the drive did: from memory or from the media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) choice: Choice,
    pub(super) alike: usize,
    pub(super) of: usize,
}

/// The best of all choices; `make` builds the profile with one.
pub(super) fn choose<E: From<ReplayError>>(
    records: &[Record],
    requests: &Requests,
    make: impl Fn(Choice) -> Result<Profile, E>,
) -> Result<Option<Chosen>, E> {
    let records = &records[..records.len().min(REPLAYED)];
    let all = SEGMENTS.into_iter().flat_map(|n| SEGMENT_SECTORS.map(|sectors| (n, sectors)));
    let all = all.flat_map(|(segments, segment_sectors)| {
        [false, true].map(|sequential| Choice { segments, segment_sectors, sequential })
    });
    let mut best: Option<Chosen> = None;
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
            best = Some(Chosen { choice, alike, of });
        }
    }
    Ok(best)
}
