//! The log of failed I/O. Clients cause its lines, so their rate is limited.

use std::fmt;
use std::io;

use hoistway_nbd::wire::Errno;
use hoistway_qos::{IoError, LogRateLimiter, RequestOp};
use hoistway_reactor::IoDone;

/// The kinds of requests, by their names in messages.
const OPS: [&str; 7] = ["read", "cache", "write", "zero", "trim", "flush", "status query"];
/// The kinds of errors, by [`error_index`].
const ERRORS: usize = 8;

/// The log of the failed I/O of one device: for each kind of request and error one line a minute,
/// with the number of lines that were left out.
#[derive(Debug)]
pub struct ErrorLog {
    limiters: [[LogRateLimiter; ERRORS]; OPS.len()],
}

/// An I/O that failed.
#[derive(Debug)]
pub struct FailedIo {
    pub op: RequestOp,
    /// The first byte and the length of the request; both 0 for a flush.
    pub offset: u64,
    pub length: u64,
    /// The error that the client gets.
    pub error: IoError,
    pub cause: Cause,
}

/// The reason of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The system reported this error number.
    System(i32),
    /// The file ended this many bytes before the end of the range.
    EndOfFile(u64),
    /// The remote replied with this error number.
    Reply(Errno),
    /// The remote did not reply in time, or could not be reached.
    NoReply,
    /// The device refused the request itself, because of an earlier failure that was logged.
    Refused,
}

impl Cause {
    /// Returns the reason for which an I/O did not end well.
    pub fn of(done: &IoDone) -> Cause {
        match (done.result, done.missing) {
            (Err(code), _) => Cause::System(code),
            (Ok(()), missing @ 1..) => Cause::EndOfFile(missing),
            (Ok(()), 0) => Cause::Refused,
        }
    }
}

impl ErrorLog {
    pub const fn new() -> ErrorLog {
        ErrorLog { limiters: [const { [const { LogRateLimiter::new() }; ERRORS] }; OPS.len()] }
    }

    /// Logs a failure, unless the rate of its kind is exceeded. `storage` names the backend.
    pub fn log(&self, storage: &dyn fmt::Display, failed: &FailedIo, now_ns: u64) {
        let limiter = &self.limiters[op_index(failed.op)][error_index(failed.error)];
        match limiter.allow(now_ns) {
            None => {}
            Some(0) => tracing::error!(%storage, "{failed}"),
            Some(suppressed) => {
                tracing::error!(%storage, suppressed, "{failed} (and others of its kind in the last minutes)");
            }
        }
    }
}

impl fmt::Display for FailedIo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FailedIo { op, offset, length, error, cause } = self;
        f.write_str(OPS[op_index(*op)])?;
        if *op != RequestOp::Flush {
            write!(f, " of {length} bytes at byte {offset}")?;
        }
        match cause {
            Cause::System(code) => write!(f, " failed: {}", io::Error::from_raw_os_error(*code))?,
            Cause::EndOfFile(missing) => write!(f, " failed: the file ends {missing} bytes before its end")?,
            Cause::Reply(errno) => write!(f, " failed: the remote replied {errno}")?,
            Cause::NoReply => f.write_str(" failed: the remote did not complete it in time")?,
            Cause::Refused => f.write_str(" failed because of an earlier error")?,
        }
        write!(f, "; the client gets {error}")
    }
}

fn op_index(op: RequestOp) -> usize {
    match op {
        RequestOp::Read => 0,
        RequestOp::Cache => 1,
        RequestOp::Write => 2,
        RequestOp::Zero { .. } => 3,
        RequestOp::Trim => 4,
        RequestOp::Flush => 5,
        RequestOp::Status => 6,
    }
}

fn error_index(error: IoError) -> usize {
    match error {
        IoError::NotPermitted => 0,
        IoError::Io => 1,
        IoError::NoMemory => 2,
        IoError::InvalidArgument => 3,
        IoError::NoSpace => 4,
        IoError::Overflow => 5,
        IoError::NotSupported => 6,
        IoError::Shutdown => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_range_the_cause_and_the_reply() {
        let failed = |op, error, cause| FailedIo { op, offset: 4096, length: 512, error, cause }.to_string();
        assert_eq!(
            failed(RequestOp::Write, IoError::NoSpace, Cause::System(libc::ENOSPC)),
            "write of 512 bytes at byte 4096 failed: No space left on device (os error 28); the client gets ENOSPC"
        );
        assert_eq!(
            failed(RequestOp::Read, IoError::Io, Cause::EndOfFile(100)),
            "read of 512 bytes at byte 4096 failed: the file ends 100 bytes before its end; the client gets EIO"
        );
        assert_eq!(
            failed(RequestOp::Flush, IoError::Io, Cause::Refused),
            "flush failed because of an earlier error; the client gets EIO"
        );
    }
}
