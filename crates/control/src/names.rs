//! Names as components of a path, and names that were meant.

use std::fmt::Write;

/// The empty name as a component.
const EMPTY: &str = "%";

/// A name as a component of a path: what a path or a line gives a meaning to (`/`, `%`, blanks,
/// control characters, the names `.` and `..`) as `%XX`; the empty name as `%` alone.
pub fn escape(name: &str) -> String {
    if name.is_empty() {
        return EMPTY.to_owned();
    }
    let all_dots = name == "." || name == "..";
    let mut component = String::with_capacity(name.len());
    for letter in name.chars() {
        if letter == '/' || letter == '%' || letter.is_whitespace() || letter.is_control() || all_dots {
            let mut bytes = [0; 4];
            for byte in letter.encode_utf8(&mut bytes).bytes() {
                let _ = write!(component, "%{byte:02X}");
            }
        } else {
            component.push(letter);
        }
    }
    component
}

/// The name that a component stands for, or `None` if it is none: `%` without two hexadecimal
/// digits behind it, or bytes that are no UTF-8.
pub fn unescape(component: &str) -> Option<String> {
    if component == EMPTY {
        return Some(String::new());
    }
    let mut name = Vec::with_capacity(component.len());
    let mut rest = component.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            name.push(*first);
            continue;
        }
        let [high, low, tail @ ..] = rest else { return None };
        name.push(hexadecimal(*high)? << 4 | hexadecimal(*low)?);
        rest = tail;
    }
    String::from_utf8(name).ok()
}

/// The one of `known` that was probably meant.
pub fn meant<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = |name: &&str| strsim::damerau_levenshtein(given, name) <= given.chars().count() / 3;
    known.into_iter().filter(near).min_by_key(|name| strsim::damerau_levenshtein(given, name))
}

fn hexadecimal(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_one_component_and_comes_back() {
        for name in
            ["", "sda", "a/b", "100%", "two words", ".", "..", "a.b", "Größe", "line\nbreak", "\u{2028}", "%", "%41"]
        {
            let component = escape(name);
            assert!(
                !component.contains('/') && !component.contains(char::is_whitespace) && component != "..",
                "{component}"
            );
            assert_eq!(unescape(&component).as_deref(), Some(name), "{component}");
        }
    }

    #[test]
    fn a_percent_sign_needs_two_hexadecimal_digits() {
        for component in ["%4", "a%", "%zz", "%+1", "%FF"] {
            assert_eq!(unescape(component), None, "{component}");
        }
        assert_eq!(unescape("%41b").as_deref(), Some("Ab"));
    }

    #[test]
    fn a_name_with_a_slip_of_the_finger_is_recognised_and_another_is_not() {
        assert_eq!(meant("schedular", ["scheduler", "size"]), Some("scheduler"));
        assert_eq!(meant("wieght", ["weight", "class"]), Some("weight"));
        assert_eq!(meant("colour", ["weight", "class"]), None);
    }
}
