//! The declaration of a table of a drive file: its type, and its keys for the reference.

/// Declares a table: the type that TOML is read into, and the keys of the reference. A key is
/// `name: type = "values", "default";`, and its comment is its meaning.
macro_rules! table {
    (
        $(#[doc = $about:literal])+
        $table:ident $([$derive:ident])?, $heading:literal {
            $(
                $(#[doc = $meaning:literal])+
                $(#[serde($($serde:tt)+)])?
                $key:ident: $type:ty = $takes:literal, $default:literal;
            )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, serde::Deserialize $(, $derive)?)]
        #[serde(deny_unknown_fields)]
        pub(in crate::profile) struct $table {
            $(
                $(#[doc = $meaning])+
                $(#[serde($($serde)+)])?
                pub(in crate::profile) $key: $type,
            )+
        }

        impl $table {
            pub(in crate::profile) const KEYS: crate::profile::keys::KeyTable = crate::profile::keys::KeyTable {
                heading: $heading,
                about: concat!($($about),+),
                keys: &[$(crate::profile::keys::Key {
                    name: stringify!($key),
                    takes: $takes,
                    default: $default,
                    meaning: concat!($($meaning),+),
                }),+],
            };
        }
    };
}
pub(super) use table;
