//! The events of the kernel's `block` subsystem, which ftrace, trace-cmd and perf record.
//!
//! They are the same moments as those of blktrace under other names. The events that blktrace has
//! no action for (`block_io_start`, `block_touch_buffer`, zones) are left out, as are plugs: they
//! name no device.

use crate::event::{Action, Event, Rwbs};
use crate::text::{LineOutput, parse_rwbs, shown};

/// Returns the action of an event; None for an event that is left out.
pub(crate) fn action_of(event: &[u8]) -> Option<Action> {
    match event {
        b"block_bio_queue" => Some(Action::Queue),
        b"block_bio_backmerge" | b"block_rq_merge" => Some(Action::BackMerge),
        b"block_bio_frontmerge" => Some(Action::FrontMerge),
        b"block_getrq" => Some(Action::Get),
        b"block_sleeprq" => Some(Action::Sleep),
        b"block_rq_insert" => Some(Action::Insert),
        b"block_rq_issue" => Some(Action::Issue),
        b"block_rq_requeue" => Some(Action::Requeue),
        b"block_rq_complete" | b"block_bio_complete" => Some(Action::Complete),
        b"block_split" => Some(Action::Split),
        b"block_bio_bounce" => Some(Action::Bounce),
        b"block_bio_remap" | b"block_rq_remap" => Some(Action::Remap),
        _ => None,
    }
}

/// Counts an event that is left out.
pub(crate) fn note_left_out(event: &[u8], out: &mut LineOutput<'_>) {
    let kind = if matches!(event, b"block_plug" | b"block_unplug" | b"block_unplug_io" | b"block_unplug_timer") {
        "plugs are left out, because their events name no device"
    } else {
        "events of other tracers are left out"
    };
    out.notices.count(kind, out.position, || shown(event));
}

/// Parses the letters of an operation. Letters that later kernels added are ignored with a notice.
pub(crate) fn operation(letters: &[u8], out: &mut LineOutput<'_>) -> Rwbs {
    if let Ok(op) = parse_rwbs(letters) {
        return op;
    }
    out.notices.count("unknown letters of an operation are ignored", out.position, || shown(letters));
    let known: Vec<u8> = letters.iter().copied().filter(|letter| b"RWDNFASMBE".contains(letter)).collect();
    parse_rwbs(&known).unwrap_or_default()
}

/// Sets the range of an event. A flush has no sector; the kernel prints the largest number instead.
///
/// # Errors
/// Fails if the length exceeds that of a request.
pub(crate) fn set_range(event: &mut Event, sector: u64, sectors: u64) -> Result<(), String> {
    event.sector = if sector == u64::MAX { 0 } else { sector };
    let bytes = sectors.checked_mul(512).and_then(|bytes| u32::try_from(bytes).ok());
    event.bytes =
        bytes.ok_or_else(|| format!("the length of {sectors} sectors is too large: 8388607 sectors are the most"))?;
    Ok(())
}
