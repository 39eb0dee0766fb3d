//! Violations of the protocol by a client, for which the server closes the connection.

/// Reason for closing a connection without a reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A magic number is wrong.
    #[error("wrong magic number {found:#x}, expected {wanted:#x}")]
    Magic {
        /// The received number.
        found: u64,
        /// The expected number.
        wanted: u64,
    },
    /// The client's flags include flags that the server did not offer.
    #[error("unknown client flags {flags:#x}")]
    ClientFlags {
        /// All flags of the client.
        flags: u32,
    },
    /// A client without fixed newstyle used another option than EXPORT_NAME.
    #[error("option {option} from a client that does not speak fixed newstyle")]
    NotFixed {
        /// Number of the option.
        option: u32,
    },
    /// The export is unavailable, and EXPORT_NAME has no error reply.
    #[error("EXPORT_NAME: {why}")]
    Unavailable {
        /// Reason for the refusal.
        why: &'static str,
    },
    /// Plain bytes arrived between STARTTLS and its acknowledgement: an injection attack.
    #[error("plain-text bytes after STARTTLS")]
    Injected,
    /// The client sent too many options.
    #[error("more than {options_max} options")]
    Options {
        /// The limit: [`Limits::options_max`](crate::Limits::options_max).
        options_max: u32,
    },
    /// The client sent too many bytes of overlong options.
    #[error("an option of {bytes} bytes, with at most {bytes_max} bytes of overlong options to be skipped")]
    Skipped {
        /// Length of the option.
        bytes: u32,
        /// The limit: [`Limits::skipped_bytes_max`](crate::Limits::skipped_bytes_max).
        bytes_max: u64,
    },
    /// A payload exceeds even the limit of discarded payloads.
    #[error("a payload of {bytes} bytes; the most is {bytes_max}")]
    Payload {
        /// Length of the payload.
        bytes: u64,
        /// The larger of the export's maximum payload and
        /// [`Limits::discarded_bytes_max`](crate::Limits::discarded_bytes_max).
        bytes_max: u32,
    },
    /// Bytes arrived after the end of the handshake.
    #[error("the handshake is over")]
    Over,
}
