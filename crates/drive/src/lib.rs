//! Models of disks (geometry, seek curve, rotation, zones, the segmented read-ahead buffer), of flash, of cloud volumes and of arrays.
//!
//! A [`Profile`] is read from TOML (or taken from the built-in ones), checked once, and made into a [`Drive`]. A drive is
//! told the time and given [`Command`]s; it says when something happens next ([`Drive::next_event_ns`]) and hands out what has
//! been completed by then and where the time went ([`Drive::poll`]). It reads no clock and draws no random numbers but from its own
//! seeded stream: the same calls give the same answers on every machine.
//!
//! The service time is that of Ruemmler & Wilkes, "An introduction to disk drive modeling" (IEEE Computer 27(3), 1994):
//! command overhead, seek or head switch, rotational delay to the first sector, transfer, and the skews crossed on the way.
//!
//! ```
//! use hoistway_drive::{Access, Drive, Op, Profile};
//! let profile = Profile::builtin("sata-7200-2006").expect("a built-in profile");
//! let mut drive = Drive::new(&profile);
//! let access = Access { op: Op::Read, sector: 123_456, sectors: 8 };
//! drive.submit(0, 7, &access.into()).expect("within the disk");
//! let finish_ns = drive.next_event_ns().expect("a command is under way");
//! let completion = drive.poll(finish_ns).expect("it is over");
//! assert_eq!((completion.tag, completion.service.phases.total_ns()), (7, finish_ns));
//! ```

#![forbid(unsafe_code)]

pub mod accuracy;
mod array;
mod buffer;
mod builtin;
mod closed_loop;
mod cloud;
mod command;
mod describe;
mod disk;
mod drive;
mod faults;
pub mod fit;
mod flash;
mod geometry;
mod null;
mod pending;
mod platter;
pub mod probe;
mod profile;
mod random;
pub mod recording;
pub mod replay;
mod seek;
mod single;
pub mod validation;

pub use closed_loop::closed_loop;
pub use command::{Access, AccessError, Command, Completion, Op, Phases, SECTOR_BYTES, Service, Source, Status};
pub use describe::{BufferDescription, Description, DriveList, FlashDescription, ZoneDescription, describe};
pub use drive::Drive;
pub use faults::{Faults, FaultsError, Hang};
pub use flash::{FlashCounters, greedy_write_amplification};
pub use profile::{Profile, ProfileError};
