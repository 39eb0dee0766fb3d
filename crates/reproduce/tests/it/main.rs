//! Integration tests of `hoistway-reproduce`: one binary, so that they are linked once.

mod reservations;
