//! The read-ahead buffer: with which segments the model hits when the drive did.

use crate::Op;
use crate::profile::Profile;
use crate::recording::Record;

use super::requests::Requests;
use super::{FitError, replay};

/// Segments, and sectors in each, that are tried.
const SEGMENTS: [u32; 5] = [1, 3, 8, 16, 32];
const SEGMENT_SECTORS: [u32; 5] = [64, 128, 256, 512, 1024];
/// Requests that the choice is made with: enough to tell, and soon done.
const REPLAYED: usize = 2500;

/// A choice of segments, and how many reads the model with it serves as the drive did: from memory or from the media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segments {
    pub(super) segments: u32,
    pub(super) segment_sectors: u32,
    pub(super) alike: usize,
    pub(super) of: usize,
}

/// Tries all choices; `make` builds the profile with one.
pub(super) fn segments<E: From<FitError>>(
    records: &[Record],
    requests: &Requests,
    make: impl Fn(u32, u32) -> Result<Profile, E>,
) -> Result<Segments, E> {
    let records = &records[..records.len().min(REPLAYED)];
    let mut best: Option<Segments> = None;
    for (segments, segment_sectors) in SEGMENTS.into_iter().flat_map(|n| SEGMENT_SECTORS.map(|sectors| (n, sectors))) {
        let predictions = replay(&make(segments, segment_sectors)?, records)?;
        let (mut alike, mut of) = (0, 0);
        for (prediction, request) in predictions.iter().zip(&requests.all) {
            if request.op == Op::Read {
                of += 1;
                let ms = prediction.predicted_ns as f64 / 1e6;
                let hit = requests.read_hits.is_some_and(|hits| hits.take(request.sectors, ms));
                alike += usize::from(hit == request.quick);
            }
        }
        if best.is_none_or(|best| alike > best.alike) {
            best = Some(Segments { segments, segment_sectors, alike, of });
        }
    }
    Ok(best.unwrap_or(Segments { segments: 1, segment_sectors: SEGMENT_SECTORS[0], alike: 0, of: 0 }))
}
