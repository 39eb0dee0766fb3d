//! Integration tests of `hoistway-report` in one binary, which is linked once.

mod browser;
mod chromium;
mod every_page;
mod trace_browser;
