//! The host: processors, page cache, read-ahead, write-back, and placement of files.

pub(crate) mod cpu;
pub(crate) mod dirty;
pub(crate) mod files;
pub(crate) mod fs;
pub(crate) mod journal;
pub(crate) mod mapping;
pub(crate) mod on_demand;
pub(crate) mod page;
pub(crate) mod page_cache;
pub(crate) mod readahead;
pub(crate) mod two_windows;
pub(crate) mod window;
