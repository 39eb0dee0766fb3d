//! Options on verification.

use super::option::{Subject, flag, option, switch};
use crate::values::put;

#[rustfmt::skip]
pub(crate) const SUBJECT: Subject = Subject {
    heading: "Verification",
    options: &[
        option("verify", &[], |job, v| put(&mut job.verification.verifies, Ok(!matches!(v.text, "0" | "none"))), "`0`, `none`, `null`, or a checksum", "`0`", "Blocks that were written are read again."),
        switch("do_verify", &[], |job| &mut job.verification.do_verify, "`1`", "0: blocks are written with a checksum and not read again."),
        flag("verify_only", &[], |job| &mut job.verification.verify_only, "The job only reads what it would write."),
        option("verify_backlog", &[], |job, v| put(&mut job.verification.verify_backlog, v.count(0)), "a number", "`0`", "The number of written blocks after which they are verified; 0: at the end of the pass."),
        option("verify_backlog_batch", &[], |job, v| put(&mut job.verification.verify_backlog_batch, v.count(0)), "a number", "`verify_backlog`", "Blocks that are verified at a time."),
    ],
};

/// The verification of written blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// True if written blocks hold a checksum (`verify`).
    pub verifies: bool,
    /// True if blocks with a checksum are read again after they were written. Default true.
    pub do_verify: bool,
    /// True if the job only reads what it would write (`verify_only`).
    pub verify_only: bool,
    /// Number of written blocks after which they are verified; 0 for the end of the pass.
    pub verify_backlog: u64,
    /// Number of blocks that are verified at once; 0 for `verify_backlog`.
    pub verify_backlog_batch: u64,
}

impl Default for Verification {
    fn default() -> Self {
        Verification {
            verifies: false,
            do_verify: true,
            verify_only: false,
            verify_backlog: 0,
            verify_backlog_batch: 0,
        }
    }
}
