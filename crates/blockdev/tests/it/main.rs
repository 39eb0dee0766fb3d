//! Devices in virtual time: shares, limits, flushes, pieces, clients that leave, elevators that are
//! switched, drives that fail.

mod agrees;
mod emulated;
mod flushes;
mod leaving;
mod limits;
mod once;
mod pieces;
mod reservations;
mod shares;
mod world;
