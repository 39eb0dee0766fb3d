//! Errors as text.

use std::error::Error;

/// Returns the text of an error with its causes; a cause that is part of the text already is left
/// out.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let of_cause = error.to_string();
        if !text.contains(&of_cause) {
            text = format!("{text}: {of_cause}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Problem {
        text: &'static str,
        source: Option<Box<Problem>>,
    }

    #[test]
    fn a_cause_that_the_text_has_is_not_repeated() {
        let cause = Problem { text: "no such file", source: None };
        let middle = Problem { text: "a.fio: no such file", source: Some(Box::new(cause)) };
        let error = Problem { text: "cannot compare", source: Some(Box::new(middle)) };
        assert_eq!(chain(&error), "cannot compare: a.fio: no such file");
    }
}
