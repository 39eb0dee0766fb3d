//! Colours that are distinguishable on both backgrounds and with colour vision deficiencies.
//!
//! The hues follow Okabe & Ito ("Color Universal Design", 2008). Lightness and chroma are chosen
//! for each background so that every colour has a contrast of 3:1 (WCAG 2.2, 1.4.11), and so that
//! the nearest two of the first eight are as far apart as possible in Oklab (Ottosson 2020) for
//! normal vision and for the two red-green deficiencies as simulated by Viénot, Brettel & Mollon
//! (1999). No such set exists for more than sixteen colours; larger palettes are a ramp from blue
//! to yellow.

use std::fmt::Write;

use serde::Serialize;

/// A colour on a light page and its counterpart on a dark page, as "#rrggbb".
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pair {
    /// The colour on white.
    pub light: String,
    /// The colour on [`DARK_BACKGROUND`].
    pub dark: String,
}

/// The background of charts in the dark theme. The style sheet has the same value.
pub const DARK_BACKGROUND: &str = "#15181e";

const LIGHT: [&str; 16] = [
    "#235fea", "#7a1a03", "#1ba48b", "#b325a6", "#be881d", "#1499e3", "#636f07", "#5c5256", "#4f3c7f", "#9a0033",
    "#068975", "#a379b9", "#967b2e", "#255f97", "#6c9f5c", "#517efe",
];
const DARK: [&str; 16] = [
    "#2b71ec", "#ac5307", "#43d5a1", "#b3378d", "#e88b09", "#58b6fd", "#ebfc4f", "#f5f4f4", "#7e5fb8", "#ca6965",
    "#3db0a0", "#edc8fb", "#f1bb38", "#4892b8", "#aef9ac", "#5f90fa",
];

/// The palette as custom properties of CSS for both themes: `--series-0` to `--series-15`, and
/// `--on-series-0` and so on for text on them.
pub fn custom_properties() -> String {
    let mut css = String::from(":root {\n");
    for (index, Pair { light, dark }) in palette(LIGHT.len()).iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(css, "  --series-{index}: light-dark({light}, {dark});");
        let _ = writeln!(css, "  --on-series-{index}: light-dark({}, {});", ink_on(light), ink_on(dark));
    }
    css.push_str("}\n");
    css
}

/// Black or white, whichever has more contrast with the colour. The contrasts are equal at a
/// luminance of 0.179 (WCAG 2.2).
fn ink_on(hex: &str) -> &'static str {
    let channel = |at: usize| {
        let value = hex.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok()).unwrap_or(0);
        let v = f64::from(value) / 255.0;
        if v <= 0.040_45 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
    };
    let luminance = 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
    if luminance > 0.179 { "#000000" } else { "#ffffff" }
}

/// A palette of `count` colours that depends on `count` alone.
pub fn palette(count: usize) -> Vec<Pair> {
    if count <= LIGHT.len() {
        let pairs = LIGHT.iter().zip(DARK).take(count);
        return pairs.map(|(light, dark)| Pair { light: (*light).to_owned(), dark: dark.to_owned() }).collect();
    }
    (0..count).map(|i| ramp(i as f64 / (count - 1) as f64)).collect()
}

/// Colours of `count` categories: the same sixteen again and again. Beyond sixteen, categories of
/// one colour have different patterns of [`dash`].
pub fn categories(count: usize) -> Vec<Pair> {
    palette(LIGHT.len()).into_iter().cycle().take(count).collect()
}

/// The colours of the parts of drive time in the order of `DriveTime`; idle time is grey.
pub fn drive_time() -> [Pair; 5] {
    let pair = |light: &str, dark: &str| Pair { light: light.to_owned(), dark: dark.to_owned() };
    [pair(LIGHT[1], DARK[1]), pair(LIGHT[4], DARK[4]), pair(LIGHT[0], DARK[0]), pair(LIGHT[5], DARK[5]), grey()]
}

/// The colour of what is not of interest, such as idle time.
pub fn grey() -> Pair {
    Pair { light: "#8a8f98".to_owned(), dark: "#7d838d".to_owned() }
}

/// The dash pattern of a line by its index. Neighbours on the ramp have different patterns, and so
/// have up to 48 categories of one colour.
pub fn dash(index: usize, count: usize) -> usize {
    if count <= 8 { 0 } else { index % 3 }
}

/// A colour of the ramp at 0 to 1: dark blue to light yellow, an order that is visible with
/// red-green deficiencies.
fn ramp(at: f64) -> Pair {
    let hue = 285.0 - 190.0 * at;
    Pair { light: oklch(0.38 + 0.27 * at, 0.13, hue), dark: oklch(0.58 + 0.34 * at, 0.12, hue) }
}

/// A colour of lightness 0 to 1, chroma and hue (degrees) as "#rrggbb". The chroma is reduced to
/// the range of sRGB.
fn oklch(lightness: f64, chroma: f64, hue: f64) -> String {
    let (sin, cos) = hue.to_radians().sin_cos();
    let mut chroma = chroma;
    loop {
        let rgb = oklab_to_linear(lightness, chroma * cos, chroma * sin);
        if chroma < 0.005 || rgb.iter().all(|v| (-1e-4..=1.0001).contains(v)) {
            let [r, g, b] = rgb.map(|v| (encode(v.clamp(0.0, 1.0)) * 255.0).round() as u8);
            return format!("#{r:02x}{g:02x}{b:02x}");
        }
        chroma *= 0.96;
    }
}

fn oklab_to_linear(lightness: f64, a: f64, b: f64) -> [f64; 3] {
    let l = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let m = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let s = (lightness - 0.089_484_177_5 * a - 1.291_485_548_0 * b).powi(3);
    [
        4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s,
        -1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s,
        -0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701_0 * s,
    ]
}

/// Encodes linear light, 0 to 1, as sRGB (IEC 61966-2-1).
fn encode(linear: f64) -> f64 {
    if linear <= 0.003_130_8 { 12.92 * linear } else { 1.055 * linear.powf(1.0 / 2.4) - 0.055 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linear(hex: &str) -> [f64; 3] {
        let channel = |at: usize| {
            let v = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
            if v <= 0.040_45 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        };
        [channel(1), channel(3), channel(5)]
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let luminance = |[r, g, b]: [f64; 3]| 0.2126 * r + 0.7152 * g + 0.0722 * b;
        let (a, b) = (luminance(linear(a)), luminance(linear(b)));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    fn oklab([r, g, b]: [f64; 3]) -> [f64; 3] {
        let l = (0.412_221_470_8 * r + 0.536_332_536_3 * g + 0.051_445_992_9 * b).max(0.0).cbrt();
        let m = (0.211_903_498_2 * r + 0.680_699_545_1 * g + 0.107_396_956_6 * b).max(0.0).cbrt();
        let s = (0.088_302_461_9 * r + 0.281_718_837_6 * g + 0.629_978_700_5 * b).max(0.0).cbrt();
        [
            0.210_454_255_3 * l + 0.793_617_785_0 * m - 0.004_072_046_8 * s,
            1.977_998_495_1 * l - 2.428_592_205_0 * m + 0.450_593_709_9 * s,
            0.025_904_037_1 * l + 0.782_771_766_2 * m - 0.808_675_766_0 * s,
        ]
    }

    /// A colour with normal vision, protanopia and deuteranopia (Viénot et al. 1999, table 3, on
    /// linear sRGB).
    fn with_colour_vision([r, g, b]: [f64; 3]) -> [[f64; 3]; 3] {
        let protan = 0.112_38 * r + 0.887_62 * g;
        let deutan = 0.292_75 * r + 0.707_25 * g;
        let protan = [protan, protan, 0.004_01 * (r - g) + b];
        [[r, g, b], protan, [deutan, deutan, 0.022_34 * (g - r) + b]]
    }

    fn nearest_two(colours: &[&str]) -> f64 {
        let seen: Vec<_> = colours.iter().map(|c| with_colour_vision(linear(c)).map(oklab)).collect();
        let mut least = f64::MAX;
        for (i, a) in seen.iter().enumerate() {
            for b in &seen[..i] {
                for (x, y) in a.iter().zip(b) {
                    least = least.min(x.iter().zip(y).map(|(p, q)| (p - q).powi(2)).sum::<f64>().sqrt());
                }
            }
        }
        least
    }

    #[test]
    fn every_colour_contrasts_with_its_background() {
        for count in [8, 16, 17, 128, 4096] {
            for pair in palette(count).iter().chain(&drive_time()) {
                assert!(contrast(&pair.light, "#ffffff") >= 3.0, "{pair:?} of {count}");
                assert!(contrast(&pair.dark, DARK_BACKGROUND) >= 3.0, "{pair:?} of {count}");
            }
        }
    }

    #[test]
    fn the_first_eight_differ_under_red_green_blindness() {
        // Oklab differences: 0.02 is just visible side by side, 0.1 is obvious.
        assert!(nearest_two(&LIGHT[..8]) > 0.1, "{}", nearest_two(&LIGHT[..8]));
        assert!(nearest_two(&DARK[..8]) > 0.1, "{}", nearest_two(&DARK[..8]));
        assert!(nearest_two(&LIGHT) > 0.05, "{}", nearest_two(&LIGHT));
        assert!(nearest_two(&DARK) > 0.05, "{}", nearest_two(&DARK));
    }

    #[test]
    fn text_on_a_colour_of_the_palette_is_readable() {
        for Pair { light, dark } in palette(LIGHT.len()) {
            for colour in [light, dark] {
                assert!(contrast(ink_on(&colour), &colour) >= 4.5, "{} on {colour}", ink_on(&colour));
            }
        }
        assert!(custom_properties().contains("  --series-0: light-dark(#235fea, #2b71ec);\n"));
    }

    #[test]
    fn up_to_48_categories_differ_in_colour_or_dash() {
        for count in [16, 17, 48] {
            let colours = categories(count);
            let lines: std::collections::HashSet<(String, usize)> =
                colours.into_iter().enumerate().map(|(index, pair)| (pair.light, dash(index, count))).collect();
            assert_eq!(lines.len(), count);
        }
    }

    #[test]
    fn drive_time_colours_differ_under_red_green_blindness() {
        let pairs = drive_time();
        let (light, dark) = (pairs.each_ref().map(|p| p.light.as_str()), pairs.each_ref().map(|p| p.dark.as_str()));
        assert!(nearest_two(&light) > 0.08, "{}", nearest_two(&light));
        assert!(nearest_two(&dark) > 0.08, "{}", nearest_two(&dark));
    }

    #[test]
    fn one_hundred_and_twenty_eight_processes_have_as_many_colours() {
        let colours = palette(128);
        let mut light: Vec<_> = colours.iter().map(|p| p.light.clone()).collect();
        light.sort();
        light.dedup();
        assert_eq!(light.len(), 128);
    }

    #[test]
    fn the_style_sheet_has_the_dark_background_of_the_contrast_figures() {
        assert!(crate::web::TOKENS.contains(&format!("--chart: light-dark(#ffffff, {DARK_BACKGROUND});")));
    }
}
