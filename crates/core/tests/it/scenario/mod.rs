//! Worked scenarios: their language (`text`), and their execution (`player`).

mod player;
mod text;

pub use player::{Issue, play};
pub use text::{Check, Expectation, Scenario, read};
