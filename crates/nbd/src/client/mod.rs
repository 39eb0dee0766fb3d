//! The client's side.
