//! The values that a sweep gives to options, tunables and keys.

use std::fmt;

use toml::de::DeValue;

/// A value of an option, a tunable or a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Int(i64),
    /// Another number; finite.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
    /// A text, such as a number with its unit.
    Text(String),
}

impl Value {
    /// Reads a value of a file. Returns `None` for a list, a table, a date, a number that does not
    /// fit into 64 bits and one that is not finite.
    pub(crate) fn read(value: &DeValue<'_>) -> Option<Value> {
        match value {
            DeValue::String(text) => Some(Value::Text(text.clone().into_owned())),
            DeValue::Boolean(flag) => Some(Value::Bool(*flag)),
            DeValue::Integer(number) => {
                let digits = number.as_str().replace('_', "");
                i64::from_str_radix(&digits, number.radix()).ok().map(Value::Int)
            }
            DeValue::Float(number) => {
                let number: f64 = number.as_str().replace('_', "").parse().ok()?;
                number.is_finite().then_some(Value::Float(number))
            }
            DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
        }
    }

    /// The value in a TOML document.
    pub(crate) fn to_toml(&self) -> toml::Value {
        match self {
            Value::Int(number) => toml::Value::Integer(*number),
            Value::Float(number) => toml::Value::Float(*number),
            Value::Bool(flag) => toml::Value::Boolean(*flag),
            Value::Text(text) => toml::Value::String(text.clone()),
        }
    }
}

/// The value as an option of a job file or a tunable has it: a text without quotes, 1 and 0 for
/// true and false.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(number) => write!(f, "{number}"),
            Value::Float(number) => write!(f, "{number}"),
            Value::Bool(flag) => write!(f, "{}", u8::from(*flag)),
            Value::Text(text) => f.write_str(text),
        }
    }
}
