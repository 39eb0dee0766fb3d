//! Integration tests of `hoistway-report`: one binary, so that they are linked once.

mod browser;
mod chromium;
mod trace_browser;
