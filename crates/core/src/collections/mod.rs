//! The data structures of elevators: total arenas, intrusive lists, a red-black tree, hash chains,
//! counters, decaying means.
//!
//! The code that prevents panics is concentrated here, so that elevators remain readable. Every
//! look-up is total: an index out of range reads a default entry, and writes to it are discarded.

pub mod arena;
pub mod count;
pub mod hash;
pub mod heap;
pub mod list;
pub mod mean;
pub mod ring;
pub mod tree;

pub use arena::{Arena, NIL, Slot};
pub use count::Count;
pub use hash::HashChains;
pub use heap::{Heap, Siblings};
pub use list::{Link, LinkOf, List};
pub use mean::{Mean, mean_with};
pub use ring::Ring;
pub use tree::{Node, Tree};
