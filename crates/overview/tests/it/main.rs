//! Integration tests of `hoistway-overview`: one binary, so that they are linked once.

mod overview;
