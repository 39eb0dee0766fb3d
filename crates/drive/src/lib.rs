//! Models of drives: disks, flash drives, cloud volumes and arrays, as a simulator sees them.
//!
//! A [`Profile`] is read from a TOML file or taken from the built-in ones, checked once, and made
//! into a [`Drive`]. A drive is a state machine without I/O and without a clock: the host passes
//! the current time with every call. It submits [`Command`]s, requests the time of the next event
//! ([`Drive::next_event_ns`]), and polls completions with the parts of their service time
//! ([`Drive::poll`]). Random numbers come from seeds in the profile, so the same calls give the
//! same results on every machine.
//!
//! `examples/describe_and_measure.rs` shows the other results of this crate. Each is a value that
//! serde serialises: [`DriveList`], [`probe::ProbeReport`], [`fit::FittedProfile`] and
//! [`accuracy::AccuracyReport`].
//!
//! # Flow of data
//!
//! ```text
//! TOML ─▶ profile/raw ─▶ profile/check ─▶ Profile ─┬─▶ Drive ─▶ single ─▶ disk, flash, cloud, null
//!                                                  │      └──▶ array ──▶ single (one per member)
//!                                                  └─▶ describe (figures without a run)
//! commands ─▶ Drive ─▶ Completion ─┬─▶ closed_loop, probe (measurements from outside)
//!                                  └─▶ accuracy (models against sums and recordings)
//! recording ─▶ replay ─▶ fit (a new profile), validation (errors of a profile)
//! ```
//!
//! A disk is a command queue over its mechanics, which serve one access at a time. The angle of the
//! platter is an integer, 2^32 a revolution, computed from the time and never accumulated. The
//! service time follows Ruemmler & Wilkes, "An introduction to disk drive modeling" (IEEE Computer
//! 27(3), 1994): command overhead, seek or head switch, rotational latency to the first sector,
//! transfer, and the skews in between. A flash drive is a queue of events over dies, channels and a
//! translation layer.
//!
//! # Where to change what
//!
//! | what | where |
//! |---|---|
//! | a drive | a file in `profiles/`, a line in `builtin.rs`, and `cargo xtask pages write --quick`, which writes the compact form of all drives |
//! | the compact form of a field of a profile | `profile/packed/fields.rs`; of a type of value, `profile/packed/values.rs` |
//! | the argument `NAME\|FILE.toml` of commands | `choice.rs` |
//! | a key of a drive file | `profile/raw/` (its type, values, default and meaning), `profile/check/` (its range); `cargo xtask pages write` writes `docs/drive-files.md` |
//! | commands, completions and their errors | `command.rs` |
//! | the choice of the next command of a disk | `disk/queue.rs`, by the access times of `disk/positioning.rs` |
//! | seek, rotation, transfer, read-ahead | `disk/media.rs`, `disk/mechanics.rs`; work in idle time in `disk/background.rs` |
//! | the write cache of a disk | `disk/write_cache.rs` |
//! | retries, bad sectors and hangs | `faults.rs` (the settings), `disk/faults.rs` (at run time) |
//! | the position of a sector | `geometry.rs`; its angle in `platter.rs`; seek curves in `seek.rs` |
//! | the translation layer of flash | `flash/ftl.rs` (map and blocks), `flash/dies.rs` (schedule of a die), `flash/start.rs` (state at time 0), `flash/writes.rs` (write buffer and flushes) |
//! | the limits of a cloud volume | `cloud/mod.rs`, its token buckets in `cloud/bucket.rs` |
//! | an array and its cache | `array/mod.rs`, `array/cache.rs` |
//! | a figure of `hoistway drives NAME` | `describe/`; its JSON form in `describe/json.rs` |
//! | a measurement from outside | `probe/`, one file a probe |
//! | a fit to a trace | `fit/`: `requests.rs` separates hits from media accesses, `tracks.rs` finds revolution and tracks, `arm.rs` seeks, `buffer.rs` segments; `base.rs` keeps a geometry |
//! | a table of `docs/drives.md` | `accuracy/` measures, the command renders; `cargo xtask pages write` writes the page |
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod accuracy;
mod array;
mod buffer;
mod builtin;
mod choice;
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
mod jitter;
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

pub use builtin::DEFAULT_DRIVE;
pub use choice::{DriveChoiceError, ProfileText, UnknownDriveError};
pub use closed_loop::closed_loop;
pub use command::{Access, AccessError, Command, Completion, Op, Phases, SECTOR_BYTES, Service, Source, Status};
pub use describe::{BufferDescription, Description, DriveList, FlashDescription, ZoneDescription, describe};
pub use drive::Drive;
pub use faults::{Faults, FaultsError, Hang};
pub use flash::{FlashCounters, greedy_write_amplification};
pub use jitter::Jitter;
pub use profile::{Profile, ProfileError, pack_builtin_profiles, reference};
