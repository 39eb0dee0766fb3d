//! The engine against a model.
