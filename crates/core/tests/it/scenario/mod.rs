//! Worked scenarios: what they say (`text`), and the small machine that they are played on (`world`).

mod text;
mod world;

pub use text::{Scenario, Want, Wanted, read};
pub use world::{Issue, play};
