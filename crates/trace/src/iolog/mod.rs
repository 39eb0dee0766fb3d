//! fio's iolog, versions 2 and 3: what `write_iolog` writes and `read_iolog` plays.
//!
//! ```text
//! fio version 2 iolog             fio version 3 iolog
//! /dev/vda add                    0 /dev/vda add
//! /dev/vda open                   19 /dev/vda open
//! /dev/vda wait 1500 0            185 /dev/vda read 4096 8192
//! /dev/vda read 4096 8192         ...
//! ```
//!
//! Offsets and lengths are bytes. Version 3 has the time of each line in us, as fio 3.33 writes it; its manual names no unit. Version 2 knows no times but
//! those that `wait` waits: us since the wait before, says the manual, and so it is read and written here. Measured, fio 3.33 takes the same number for ms
//! since its job began: what is to be played belongs into version 3.

mod reader;
mod writer;

pub(crate) use reader::{Files, Iolog};

pub use writer::{LogVersion, Writer};
