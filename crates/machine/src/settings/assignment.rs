//! A setting and its value, as `NAME=VALUE`.

use std::fmt;

use serde::Serialize;

/// A setting and the value to set.
///
/// ```
/// use hoistway_machine::Assignment;
/// let assignment = Assignment::parse("queue/read_ahead_kb=128")?;
/// assert_eq!(assignment.to_string(), "read_ahead_kb=128");
/// # Ok::<(), hoistway_machine::AssignmentError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Assignment {
    /// The name: `scheduler`, a tunable of the scheduler, or a setting of the queue.
    pub name: String,
    /// The value, as the kernel takes it.
    pub value: String,
}

/// A text is not an assignment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a setting: a setting is NAME=VALUE, as in scheduler=bfq or read_ahead_kb=128")]
pub struct AssignmentError {
    /// The text.
    pub text: String,
}

impl Assignment {
    /// An assignment of a value to a name; neither is checked.
    pub fn new(name: &str, value: impl Into<String>) -> Assignment {
        Assignment { name: name.to_owned(), value: value.into() }
    }

    /// Parses `name=value`; the prefixes `queue/` and `iosched/` of the name are dropped.
    ///
    /// # Errors
    /// [`AssignmentError`] for any other form.
    pub fn parse(text: &str) -> Result<Assignment, AssignmentError> {
        let error = || AssignmentError { text: text.to_owned() };
        let (name, value) = text.split_once('=').ok_or_else(error)?;
        let (name, value) = (name.trim(), value.trim());
        let name = name.strip_prefix("queue/").unwrap_or(name);
        let name = name.strip_prefix("iosched/").unwrap_or(name);
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_name) || value.is_empty() || value.contains(char::is_control) {
            return Err(error());
        }
        Ok(Assignment::new(name, value))
    }

    /// Formats assignments as arguments of a shell command.
    pub fn list(assignments: &[Assignment]) -> String {
        assignments.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }
}

impl fmt::Display for Assignment {
    /// Formats the assignment as one word of a shell command, quoted where needed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.,:+%".contains(c);
        if self.value.chars().all(is_plain) {
            write!(f, "{}={}", self.name, self.value)
        } else {
            write!(f, "'{}={}'", self.name, self.value.replace('\'', r"'\''"))
        }
    }
}
