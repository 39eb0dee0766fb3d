//! Integration tests of `hoistway-advise`: one binary, so that they are linked once.

mod advice;
mod facts;
#[path = "../../../machine/tests/it/fake/mod.rs"]
mod fake;
mod whatif;
