//! The pieces that elevators are made of: total arenas, intrusive lists, a red-black tree, hash chains, decaying means.
//!
//! The care that keeps the core from panicking is hidden here, so that an elevator reads like its own description.
//! Every look-up is total: an index that is out of range reads a default entry and swallows writes.

pub mod arena;
pub mod hash;
pub mod heap;
pub mod list;
pub mod mean;
pub mod ring;
pub mod tree;

pub use arena::{Arena, NIL, Slot};
pub use hash::HashChains;
pub use heap::{Heap, HeapEntry};
pub use list::{Link, LinkOf, List};
pub use mean::Mean;
pub use ring::Ring;
pub use tree::{Node, Tree};
