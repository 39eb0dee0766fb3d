//! The scripts and the style sheet that all pages share, also those outside of this crate.

use crate::palette::custom_properties;

/// The theme of a page: a classic script that goes into its head. It defines `hoistwayTheme`.
pub const THEME_SCRIPT: &str = include_str!("../templates/theme.js");

/// The chart library as modules: file name and source, each after those that it imports. Pages that
/// load modules import `chart` from `charts.js`.
pub const CHART_MODULES: [(&str, &str); 4] = [
    ("scales.js", include_str!("../web/scales.js")),
    ("draw.js", include_str!("../web/draw.js")),
    ("legend.js", include_str!("../web/legend.js")),
    ("charts.js", include_str!("../web/charts.js")),
];

/// The tokens of both themes: colours of the page and of everything but series.
pub(crate) const TOKENS: &str = include_str!("../templates/tokens.css");
/// The legends and keys of charts, a rule a line.
const LEGEND_STYLE: &str = include_str!("../templates/legends.css");
const PAGE_STYLE: &str = include_str!("../templates/page.css");
const CHART_STYLE: &str = include_str!("../web/charts.css");

/// The style sheet of all pages: the tokens of both themes, the palette and the charts.
pub fn style_sheet() -> String {
    format!("{TOKENS}{LEGEND_STYLE}{PAGE_STYLE}{}{CHART_STYLE}", custom_properties())
}

/// The part of [`style_sheet`] for pages that have a style of their own: tokens, palette and
/// charts, with the legends and keys of charts.
pub fn chart_style_sheet() -> String {
    let legends: String = LEGEND_STYLE.lines().map(|rule| format!(".chart {rule}\n")).collect();
    format!("{TOKENS}{}{legends}{CHART_STYLE}", custom_properties())
}

/// The chart library as one classic script, which defines `hoistwayCharts` with what its modules
/// export. It works in pages from files, for which browsers load no modules.
pub fn charts_script() -> String {
    joined("hoistwayCharts", &CHART_MODULES)
}

/// The scales and number formats of the charts as a classic script, which defines `hoistwayScales`.
pub(crate) fn scales_script() -> String {
    joined("hoistwayScales", &CHART_MODULES[..1])
}

/// Joins modules into a classic script that defines `name` with all that they export. A statement
/// of import or export stands at the beginning of a line.
fn joined(name: &str, modules: &[(&str, &str)]) -> String {
    let mut body = String::new();
    let mut exported = Vec::new();
    for (_, source) in modules {
        let mut in_import = false;
        for line in source.lines() {
            if in_import || line.starts_with("import ") {
                in_import = !line.ends_with(';');
                continue;
            }
            let line = line.strip_prefix("export ").inspect(|rest| exported.extend(declared(rest))).unwrap_or(line);
            body.push_str(line);
            body.push('\n');
        }
    }
    let names = exported.join(", ");
    format!("const {name} = (() => {{\n\"use strict\";\n{body}return {{ {names} }};\n}})();\n")
}

/// The name that a declaration gives.
fn declared(line: &str) -> Option<&str> {
    let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    words.find(|word| !["async", "function", "class", "const", "let"].contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_modules_have_no_imports_and_name_their_exports() {
        let modules = [
            ("a.js", "export const one = 1;\nexport function two() {\n  return one;\n}\n"),
            (
                "b.js",
                "import {\n  two,\n} from \"./a.js\";\nimport { one } from \"./a.js\";\nexport class Three {}\nlet x;\n",
            ),
        ];
        let script = joined("all", &modules);
        assert_eq!(
            script,
            "const all = (() => {\n\"use strict\";\nconst one = 1;\nfunction two() {\n  return one;\n}\nclass Three {}\nlet x;\n\
             return { one, two, Three };\n})();\n"
        );
    }

    #[test]
    fn the_style_of_charts_has_tokens_series_and_keys_and_no_rules_of_pages() {
        let style = chart_style_sheet();
        for rule in [
            "--chart: light-dark(",
            "--series-0: ",
            "\n.chart .key i {",
            "\n.chart .legend button {",
            "\n.chart .axis {",
        ] {
            assert!(style.contains(rule), "{rule}");
        }
        let rules = style.lines().filter(|line| line.ends_with('}') && line.len() > 1 && !line.starts_with(' '));
        for rule in rules {
            assert!(
                rule.starts_with(".chart") || rule.starts_with(":root") || rule.starts_with(".plot-area"),
                "{rule}"
            );
        }
    }

    #[test]
    fn the_library_is_small_and_exports_chart() {
        let script = charts_script();
        assert!(script.contains("chart") && !script.contains("\nimport ") && !script.contains("\nexport "));
        assert!(script.len() < 70_000, "{} bytes", script.len());
    }

    #[test]
    fn no_two_modules_declare_the_same_name() {
        let mut names = std::collections::HashSet::new();
        for (file, source) in CHART_MODULES {
            for line in source.lines() {
                let line = line.strip_prefix("export ").unwrap_or(line);
                let is_declaration = ["function ", "async function ", "class ", "const ", "let "]
                    .iter()
                    .any(|word| line.starts_with(word));
                if let Some(name) = declared(line).filter(|_| is_declaration) {
                    assert!(names.insert(name), "{name} of {file} is declared twice");
                }
            }
        }
    }
}
