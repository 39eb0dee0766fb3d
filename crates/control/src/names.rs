//! Names as components of a path, and suggestions for misspelt names.

use std::fmt::Write;

use hoistway_units::printable::is_printable;

/// The component of the empty name.
const EMPTY: &str = "%";

/// Encodes a name as a component of a path. Characters with a meaning in a path or a line (`/`,
/// `%`, blanks, unprintable characters, the names `.` and `..`) become `%XX`; the empty name
/// becomes `%`.
pub fn escape(name: &str) -> String {
    if name.is_empty() {
        return EMPTY.to_owned();
    }
    let all_dots = name == "." || name == "..";
    let mut component = String::with_capacity(name.len());
    for letter in name.chars() {
        if letter == '/' || letter == '%' || letter.is_whitespace() || !is_printable(letter) || all_dots {
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

/// Decodes a component. Returns `None` for a `%` without two hexadecimal digits, and for bytes that
/// are not UTF-8.
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

/// Returns the name in `known` that is most similar to a misspelt one, if one is similar enough.
pub fn suggest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    hoistway_units::names::near(given, known).first().copied()
}

fn hexadecimal(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_one_component_and_is_decoded_again() {
        for name in [
            "",
            "sda",
            "a/b",
            "100%",
            "two words",
            ".",
            "..",
            "a.b",
            "Größe",
            "line\nbreak",
            "\u{2028}",
            "\u{202e}",
            "%",
            "%41",
        ] {
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
    fn a_misspelt_name_has_a_suggestion_and_an_unrelated_one_has_none() {
        assert_eq!(suggest("schedular", ["scheduler", "size"]), Some("scheduler"));
        assert_eq!(suggest("wieght", ["weight", "class"]), Some("weight"));
        assert_eq!(suggest("colour", ["weight", "class"]), None);
    }
}
