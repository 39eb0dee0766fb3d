//! fio's iolog, versions 2 and 3: the format of the options `write_iolog` and `read_iolog`.
//!
//! ```text
//! fio version 2 iolog             fio version 3 iolog
//! /dev/vda add                    0 /dev/vda add
//! /dev/vda open                   19 /dev/vda open
//! /dev/vda wait 1500 0            185 /dev/vda read 4096 8192
//! /dev/vda read 4096 8192         ...
//! ```
//!
//! Offsets and lengths are in bytes. Version 3 has the time of each line in us, as fio 3.33 writes
//! it; the manual names no unit. Version 2 has no times except those of `wait`: us since the
//! previous wait, according to the manual, which this module follows. In measurements, fio 3.33
//! interprets the number as ms since the start of its job; use version 3 for logs that fio replays.

mod reader;
mod writer;

pub(crate) use reader::Iolog;

pub use writer::{LogVersion, Writer};
