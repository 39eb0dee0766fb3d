//! A host that keeps a constant number of commands in flight.

use crate::command::{AccessError, Command, Completion};
use crate::drive::Drive;

/// Runs `commands` with `depth` of them in flight, from `start_ns` on, and returns the time of the
/// last completion.
///
/// `depth` is limited to the depth of the drive. `each` receives the submission time and the
/// completion of every command, in the order of completion. The tag of a command is its number
/// modulo 2^32.
///
/// # Errors
/// [`AccessError`] for the first command that the drive refuses, and if the drive hangs for ever.
/// Commands in flight remain in the drive.
pub fn closed_loop(
    drive: &mut Drive,
    start_ns: u64,
    depth: u32,
    commands: impl IntoIterator<Item = Command>,
    mut each: impl FnMut(u64, &Completion),
) -> Result<u64, AccessError> {
    let depth = depth.clamp(1, drive.depth().max(1)) as usize;
    let mut in_flight: Vec<(u32, u64)> = Vec::with_capacity(depth);
    let mut now_ns = start_ns;
    let mut numbered = (0u64..).zip(commands);
    let mut next = numbered.next();
    loop {
        while let (Some((number, command)), true) = (&next, in_flight.len() < depth) {
            let tag = *number as u32;
            drive.submit(now_ns, tag, command)?;
            in_flight.push((tag, now_ns));
            next = numbered.next();
        }
        if in_flight.is_empty() {
            return Ok(now_ns);
        }
        let at_ns = drive.next_event_ns().ok_or(AccessError::NoAnswer { since_ns: now_ns })?;
        now_ns = now_ns.max(at_ns);
        while let Some(completion) = drive.poll(now_ns) {
            if let Some(at) = in_flight.iter().position(|(tag, _)| *tag == completion.tag) {
                let (_, submitted_ns) = in_flight.swap_remove(at);
                each(submitted_ns, &completion);
            }
        }
    }
}
