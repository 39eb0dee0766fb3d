//! Devices in virtual time: shares, limits, flushes, split requests, clients that leave, elevator
//! switches, failing drives.

mod completions;
mod emulated;
mod flushes;
mod leaving;
mod limits;
mod pieces;
mod reservations;
mod shares;
mod simulator_agreement;
mod slices;
mod testbed;
