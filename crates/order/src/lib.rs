//! Files in the order in which they lie on the disk: found, placed, sorted, listed and archived.
//!
//! A run is two passes, so that the arm of a disk sweeps instead of jumping:
//!
//! 1. The [walk](walk::walk) finds everything under the paths that were asked for. Directories are read by inode number in one-way sweeps; one that is
//!    discovered on the way joins the sweep, or the next one if it lies behind.
//! 2. [Placing](place::place) asks the file system where each file's data begin, by inode number again; [`order`] sorts them by that.
//!
//! What is found is kept in a [`Tree`], which is small (40 bytes a file and its name), because trees of ten million files are what this is for.
//!
//! ```no_run
//! use hoistway_order::{By, Tree, order, place, walk};
//!
//! let mut tree = Tree::new();
//! let mut problem = |problem: hoistway_order::Problem| eprintln!("{problem}");
//! walk::walk(&["/srv/mail".into()], &walk::Options::default(), &mut tree, &mut problem)?;
//! let ids: Vec<_> = tree.ids().collect();
//! place::place(&mut tree, &ids, &place::Options::default(), &mut problem);
//! let mut path = Vec::new();
//! for id in order(&tree, By::Auto) {
//!     tree.path_into(id, &mut path);
//!     println!("{}", String::from_utf8_lossy(&path));
//! }
//! # Ok::<(), hoistway_order::TreeFull>(())
//! ```

#![warn(missing_docs)]

pub mod archive;
pub mod ext4;
mod fiemap;
pub mod model;
mod mounts;
pub mod place;
pub mod plan;
mod problem;
mod reach;
mod sort;
mod tree;
pub mod walk;

pub use fiemap::{Asker as Extents, At, Extent};
pub use problem::{Doing, Problem, Trouble, shown};
pub use reach::{Opened, PATH_BYTES_MAX};
pub use sort::{By, order};
pub use tree::{Entry, Follow, Id, Kind, Place, Tree, TreeFull};
