//! Pictures that have variants: for narrow windows, for the dark theme, and for both.

use crate::highlight::escape;

/// What follows the stem of the file of each variant: `report.png` has `report-narrow.png`,
/// `report-dark.png` and `report-narrow-dark.png` beside it.
pub const VARIANTS: [&str; 3] = ["-narrow", "-dark", "-narrow-dark"];

/// The widest window that shows the variant for narrow windows, in CSS pixels.
const NARROW: u32 = 600;

/// The file of a variant of a picture.
pub fn variant(file: &str, suffix: &str) -> String {
    let (stem, extension) = file.rsplit_once('.').unwrap_or((file, ""));
    format!("{stem}{suffix}.{extension}")
}

/// Returns the HTML of a picture with its variants, whose addresses are in the order of
/// [`VARIANTS`]. The style sheet shows the one of the theme; a browser does not load the other.
pub fn html(plain: &str, variants: &[String; 3], text: &str) -> String {
    let [narrow, dark, narrow_dark] = variants;
    let picture = |theme: &str, wide: &str, narrow: &str| {
        format!(
            "<picture class=\"{theme}\"><source media=\"(max-width: {NARROW}px)\" srcset=\"{}\"><img src=\"{}\" alt=\"{}\" loading=\"lazy\"></picture>",
            escape(narrow),
            escape(wide),
            escape(text)
        )
    };
    picture("light", plain, narrow) + &picture("dark", dark, narrow_dark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_an_element_for_each_theme_and_a_source_for_narrow_windows() {
        let variants = VARIANTS.map(|suffix| variant("docs/p.v.png", suffix));
        assert_eq!(variants, ["docs/p.v-narrow.png", "docs/p.v-dark.png", "docs/p.v-narrow-dark.png"]);
        let html = html("docs/p.v.png", &variants, "a < b");
        for part in [
            "<picture class=\"light\"><source media=\"(max-width: 600px)\" srcset=\"docs/p.v-narrow.png\"><img src=\"docs/p.v.png\"",
            "<picture class=\"dark\"><source media=\"(max-width: 600px)\" srcset=\"docs/p.v-narrow-dark.png\"><img src=\"docs/p.v-dark.png\"",
            "alt=\"a &lt; b\"",
        ] {
            assert!(html.contains(part), "{html}");
        }
    }
}
