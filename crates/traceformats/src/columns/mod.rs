//! Tables of requests whose columns the user describes, as in `time=2:s,op=3:hex,size=4:bytes,
//! offset=5:sectors`.
//!
//! `spec.rs` parses the description, `reader.rs` the lines.

mod reader;
mod spec;

pub use reader::Table;
pub use spec::ColumnSpec;
