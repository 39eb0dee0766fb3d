//! Integration tests of `hoistway-order`: one binary, so that they are linked once.

mod aged;
mod archive;
mod common;
mod images;
mod walk;
