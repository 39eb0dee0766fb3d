//! Devices in virtual time: shares, limits, flushes, pieces, clients that leave, elevators that are switched, drives that fail.

mod shares;
mod world;
