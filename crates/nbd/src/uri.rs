//! Names of exports.
