//! The fields of the compact form, type by type. The compiler refuses a list that lacks a field.

use super::super::array::{ArrayCacheProfile, ArrayProfile, DestageOrder, MemberProfile};
use super::super::buffer::{BufferProfile, ReadAheadUntil, ReadAheadWhen, Replacement, WriteCacheProfile};
use super::super::cloud::{BucketProfile, CloudProfile, LatencyProfile};
use super::super::disk::{DiskProfile, Mapping, OverheadsNs, ZoneProfile};
use super::super::flash::{FlashProfile, FlushProfile, Precondition, Rate};
use super::super::queue::{QueuePolicy, QueueProfile};
use super::super::single::{NullProfile, SingleKind};
use super::super::{Kind, Profile};
use super::Packed;
use super::values::Difference;
use crate::faults::{Faults, Hang};
use crate::seek::SeekCurve;

macro_rules! packed_struct {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl Packed for $type {
            fn pack(&self, to: &mut Vec<u8>) {
                let $type { $($field),* } = self;
                $($field.pack(to);)*
            }

            fn unpack(from: &mut &[u8]) -> Option<$type> {
                Some($type { $($field: Packed::unpack(from)?),* })
            }
        }
    };
}

macro_rules! packed_enum {
    ($type:ident { $($tag:literal = $variant:ident $(($value:ident))? $({ $($field:ident),* })?),* $(,)? }) => {
        impl Packed for $type {
            fn pack(&self, to: &mut Vec<u8>) {
                match self {
                    $($type::$variant $(($value))? $({ $($field),* })? => {
                        to.push($tag);
                        $($value.pack(to);)?
                        $($($field.pack(to);)*)?
                    })*
                }
            }

            fn unpack(from: &mut &[u8]) -> Option<$type> {
                match u8::unpack(from)? {
                    $($tag => {
                        $(let $value = Packed::unpack(from)?;)?
                        $($(let $field = Packed::unpack(from)?;)*)?
                        Some($type::$variant $(($value))? $({ $($field),* })?)
                    })*
                    _ => None,
                }
            }
        }
    };
}

packed_struct!(Profile { name, what, source, licence, inputs, fua, kind });
packed_enum!(Kind { 0 = Single(kind), 1 = Array(array) });
packed_enum!(SingleKind { 0 = Disk(disk), 1 = Flash(flash), 2 = Cloud(cloud), 3 = Null(null) });
packed_struct!(NullProfile { service_ns, depth, capacity_sectors });

packed_struct!(DiskProfile {
    revolution_ns,
    phase_revolutions,
    surfaces,
    cylinders,
    mapping,
    capacity_sectors,
    head_switch_ms,
    write_settle_ms,
    seek,
    zones,
    slips,
    idle_verify_ms,
    heads_apart,
    overheads,
    interface_sector_ns,
    store_and_forward,
    buffer,
    queue,
    faults,
});
packed_enum!(Mapping { 0 = Cylinder, 1 = Serpentine { run_cylinders } });
packed_enum!(SeekCurve {
    0 = Table(points),
    1 = LeeKatz { single_ms, average_ms, full_ms },
    2 = RuemmlerWilkes { knee_cylinders, a_ms, b_ms, c_ms, e_ms },
});
packed_struct!(OverheadsNs {
    read_hit_after_read,
    read_hit_after_write,
    read_miss_after_read,
    read_miss_after_write,
    write_hit_after_read,
    write_hit_after_write,
    write_miss_after_read,
    write_miss_after_write,
});
packed_struct!(BufferProfile {
    enabled,
    segments,
    segment_sectors,
    read_ahead_sectors,
    read_ahead_min_sectors,
    read_ahead_until,
    read_ahead_when,
    immediate_read,
    replacement,
    keep_read,
    keep_after_write,
    keep_written,
    write_cache,
});
packed_struct!(WriteCacheProfile { sectors, runs, high, low, idle_ns, turn_sectors });
packed_enum!(Replacement { 0 = Lru, 1 = RoundRobin });
packed_enum!(ReadAheadWhen { 0 = Always, 1 = Sequential });
packed_enum!(ReadAheadUntil { 0 = Segment, 1 = Track, 2 = NextTrack, 3 = Cylinder });
packed_struct!(QueueProfile { depth, policy, window, age_weight, max_wait_ms, flush_blocks });
packed_enum!(QueuePolicy { 0 = Fifo, 1 = Satf });
packed_struct!(Faults { bad_sectors, slow_sectors, bad_share, slow_share, seed, retries, spare_sectors, hangs });
packed_struct!(Hang { at_ms, for_ms });

packed_struct!(FlashProfile {
    queues,
    depth,
    capacity_sectors,
    command_ns,
    interface_ns,
    link,
    further_unit_ns,
    write_ns,
    write_latency_ns,
    link_full_duplex,
    channels,
    channel,
    dies,
    planes,
    blocks_per_plane,
    pages_per_block,
    page_bytes,
    stripe_units,
    page_read_ns,
    wordline_pages,
    program_ns,
    erase_ns,
    suspend_ns,
    overtakes_max,
    spare_factor,
    gc_turn_programs,
    background_suspend_ns,
    gc_start_blocks,
    gc_hard_blocks,
    slice_blocks,
    precondition,
    buffer_units,
    flush,
});
packed_struct!(FlushProfile { flush_ns, power_loss_protection, blocks_commands });
packed_struct!(Rate { sector_ps });
packed_enum!(Precondition { 0 = Fresh, 1 = Sequential, 2 = Steady });

packed_struct!(CloudProfile { capacity_sectors, depth, unit_bytes, operations, bytes, latency });
packed_struct!(BucketProfile { rate_per_s, depth, start, ceiling_per_s });
packed_struct!(LatencyProfile { floor_ns, jitter_median_ns, jitter_sigma_milli, seed });

packed_struct!(ArrayProfile { depth, command_ns, link_sector_ns, copies, chunk_sectors, cache, members });
packed_struct!(ArrayCacheProfile { sectors, battery, high_sectors, low_sectors, idle_ns, order });
packed_enum!(DestageOrder { 0 = Sweep, 1 = Fifo });
packed_struct!(MemberProfile { name, kind });

/// In a list, a zone has the difference of its first cylinder to the last one of the zone before,
/// its number of cylinders less one, the difference of its sectors in a track, and the other fields
/// as they are.
impl Packed for ZoneProfile {
    fn pack(&self, to: &mut Vec<u8>) {
        ZoneProfile::pack_list(std::slice::from_ref(self), to);
    }

    fn unpack(from: &mut &[u8]) -> Option<ZoneProfile> {
        ZoneProfile::unpack_list(1, from)?.pop()
    }

    fn pack_list(list: &[ZoneProfile], to: &mut Vec<u8>) {
        let (mut cylinder, mut sectors) = (Difference::default(), Difference::default());
        for zone in list {
            let ZoneProfile {
                first_cylinder,
                last_cylinder,
                sectors_per_track,
                track_skew_revolutions,
                change_skew_revolutions,
                group_skew_revolutions,
                offset_revolutions,
                empty_front_sectors,
                spare_sectors_per_run,
                spare_sectors,
            } = zone;
            cylinder.pack(i64::from(*first_cylinder), to);
            cylinder.pack(i64::from(*last_cylinder), to);
            sectors.pack(i64::from(*sectors_per_track), to);
            track_skew_revolutions.pack(to);
            change_skew_revolutions.pack(to);
            group_skew_revolutions.pack(to);
            offset_revolutions.pack(to);
            empty_front_sectors.pack(to);
            spare_sectors_per_run.pack(to);
            spare_sectors.pack(to);
        }
    }

    fn unpack_list(count: u64, from: &mut &[u8]) -> Option<Vec<ZoneProfile>> {
        let (mut cylinder, mut sectors) = (Difference::default(), Difference::default());
        let mut zone = || {
            Some(ZoneProfile {
                first_cylinder: cylinder.unpack(from)?.try_into().ok()?,
                last_cylinder: cylinder.unpack(from)?.try_into().ok()?,
                sectors_per_track: sectors.unpack(from)?.try_into().ok()?,
                track_skew_revolutions: Packed::unpack(from)?,
                change_skew_revolutions: Packed::unpack(from)?,
                group_skew_revolutions: Packed::unpack(from)?,
                offset_revolutions: Packed::unpack(from)?,
                empty_front_sectors: Packed::unpack(from)?,
                spare_sectors_per_run: Packed::unpack(from)?,
                spare_sectors: Packed::unpack(from)?,
            })
        };
        (0..count).map(|_| zone()).collect()
    }
}
