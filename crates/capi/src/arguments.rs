//! Checks and conversions of arguments: pointers, handles, flags.

use core::mem::transmute;

use hoistway_core::{Bio, Class, ContextId, Flags, GroupId, Op, Priority, Request, RequestId};

use crate::types::{CBio, Status};

/// Reads a structure through a pointer from C.
///
/// # Safety
///
/// Unless it is null or misaligned, it must point to a readable `T`.
pub(crate) unsafe fn read<T: Copy>(from: *const T) -> Result<T, Status> {
    if from.is_null() || !from.is_aligned() {
        return Err(Status::Invalid);
    }
    // SAFETY: guaranteed by the caller.
    Ok(unsafe { from.read() })
}

/// Checks a pointer to a result before the call has any effect.
pub(crate) fn check_out<T>(to: *mut T) -> Result<(), Status> {
    if to.is_null() || !to.is_aligned() { Err(Status::Invalid) } else { Ok(()) }
}

/// The bytes of a name from C.
///
/// # Safety
///
/// Unless it is null, `name` must point to `len` readable bytes that do not change while the result
/// is used.
pub(crate) unsafe fn bytes<'a>(name: *const u8, len: usize) -> Result<&'a [u8], Status> {
    if name.is_null() || len > isize::MAX as usize {
        return Err(Status::Invalid);
    }
    // SAFETY: guaranteed by the caller.
    Ok(unsafe { core::slice::from_raw_parts(name, len) })
}

// A handle consists of two 32-bit numbers without padding. Every bit pattern is valid (if only as a
// stale handle), so its bits are passed as one opaque number. A handle of another size does not
// compile here.

pub(crate) fn request_bits(id: RequestId) -> u64 {
    // SAFETY: eight bytes without padding, see above.
    unsafe { transmute::<RequestId, u64>(id) }
}

pub(crate) fn request_id(bits: u64) -> RequestId {
    // SAFETY: any bits are a valid handle, see above.
    unsafe { transmute::<u64, RequestId>(bits) }
}

pub(crate) fn context_bits(id: ContextId) -> u64 {
    // SAFETY: as for requests.
    unsafe { transmute::<ContextId, u64>(id) }
}

pub(crate) fn context_id(bits: u64) -> ContextId {
    // SAFETY: as for requests.
    unsafe { transmute::<u64, ContextId>(bits) }
}

pub(crate) fn group_bits(id: GroupId) -> u64 {
    // SAFETY: as for requests.
    unsafe { transmute::<GroupId, u64>(id) }
}

pub(crate) fn group_id(bits: u64) -> GroupId {
    // SAFETY: as for requests.
    unsafe { transmute::<u64, GroupId>(bits) }
}

/// The flags and their bits in C.
const FLAGS: [(u16, Flags); 6] =
    [(1, Flags::SYNC), (2, Flags::META), (4, Flags::IDLE), (8, Flags::UNPLUG), (16, Flags::FUA), (32, Flags::BARRIER)];

pub(crate) fn flags_bits(flags: Flags) -> u16 {
    FLAGS.iter().filter(|(_, flag)| flags.has(*flag)).fold(0, |bits, (bit, _)| bits | bit)
}

fn flags(bits: u16) -> Result<Flags, Status> {
    if bits & !63 != 0 {
        return Err(Status::Invalid);
    }
    Ok(FLAGS.iter().filter(|(bit, _)| bits & bit != 0).fold(Flags::NONE, |flags, (_, flag)| flags.and(*flag)))
}

pub(crate) fn bio(from: &CBio) -> Result<Bio, Status> {
    let op = match from.op {
        0 => Op::Read,
        1 => Op::Write,
        3 => Op::Discard,
        _ => return Err(Status::Invalid),
    };
    let CBio { token, context, sector, sectors, .. } = *from;
    Ok(Bio { token, context: context_id(context), op, sector, sectors, flags: flags(from.flags)? })
}

/// Converts a priority from the kernel's numbers of classes: 0 none, 1 real time, 2 best effort, 3
/// idle.
pub(crate) fn priority(class: u32, level: u32) -> Result<Priority, Status> {
    let class = match class {
        0 => Class::None,
        1 => Class::RealTime,
        2 => Class::BestEffort,
        3 => Class::Idle,
        _ => return Err(Status::Invalid),
    };
    let level = u8::try_from(level).map_err(|_| Status::Invalid)?;
    Priority::new(class, level).ok_or(Status::Invalid)
}

/// The maximum number of tokens that a request's completion writes: a merged bio has at least one
/// sector and an entry of its own.
pub(crate) fn bios_max(request: &Request, merged_bios: u32) -> u32 {
    request.sectors().clamp(1, merged_bios.saturating_add(1))
}
