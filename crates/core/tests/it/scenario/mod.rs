//! Worked scenarios: their language (`text`), and the machine that executes them (`world`).

mod text;
mod world;

pub use text::{Scenario, Want, Wanted, read};
pub use world::{Issue, play};
