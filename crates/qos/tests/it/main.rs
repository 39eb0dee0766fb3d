//! Queues in virtual time, against models: limits, flow of requests, reservations, accounts.

mod accounts;
mod flow;
mod host;
mod limiter;
mod order;
mod reservations;
