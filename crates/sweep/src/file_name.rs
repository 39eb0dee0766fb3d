//! Names of files that follow from their contents.

use sha2::{Digest, Sha256};

/// The name that a hash gives to a file, without the ending: its first 20 hexadecimal digits.
pub fn file_name(hash: Sha256) -> String {
    hash.finalize().iter().take(10).map(|byte| format!("{byte:02x}")).collect()
}
