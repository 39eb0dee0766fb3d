//! Configurations, good and bad.
