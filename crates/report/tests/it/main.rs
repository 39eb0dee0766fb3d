//! Integration tests of `hoistway-report` in one binary, which is linked once.

mod browser;
mod charts_scales;
mod chromium;
mod every_page;
mod trace_browser;
