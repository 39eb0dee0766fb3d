//! Diagrams: flowcharts in Mermaid's notation, drawn as SVG.
//!
//! The notation is the part that the repository uses: `flowchart TD`, lines `a --> b` and lone
//! nodes. A node is below all nodes that lead to it. Positions in a row follow the mean of the
//! neighbours above, over several passes.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};

const CHARACTER: usize = 8;
const PADDING: usize = 18;
const GAP: usize = 14;
const ROW: usize = 74;
const BOX: usize = 28;
const MARGIN: usize = 8;

/// An arrow from a node to another.
type Edge<'a> = (&'a str, &'a str);

/// Draws a flowchart.
pub fn svg(text: &str, title: &str) -> Result<String> {
    let (edges, lone) = edges(text)?;
    let mut rows = arranged(&edges);
    match rows.first_mut() {
        Some(first) => first.extend(lone),
        None => rows.push(lone),
    }
    let width_of = |name: &str| name.len() * CHARACTER + PADDING;
    let row_width = |row: &Vec<&str>| row.iter().map(|name| width_of(name) + GAP).sum::<usize>();
    let width = rows.iter().map(row_width).max().unwrap_or(0);
    let mut at: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (index, row) in rows.iter().enumerate() {
        let mut x = MARGIN + (width - row_width(row)) / 2;
        for name in row {
            at.insert(name, (x + width_of(name) / 2, MARGIN + index * ROW));
            x += width_of(name) + GAP;
        }
    }
    let (w, h) = (width + 2 * MARGIN, rows.len().saturating_sub(1) * ROW + BOX + 2 * MARGIN);
    let mut drawn = format!(
        "<svg class=\"diagram\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" role=\"img\" aria-label=\"{title}\">\n"
    );
    for (from, to) in &edges {
        let ((x0, y0), (x1, y1)) = (at[from], at[to]);
        let (y0, middle) = (y0 + BOX, (y0 + BOX + y1) / 2);
        drawn.push_str(&format!("<path d=\"M{x0} {y0}C{x0} {middle} {x1} {middle} {x1} {y1}\"/>\n"));
    }
    for (name, (x, y)) in &at {
        let wide = width_of(name);
        drawn.push_str(&format!(
            "<rect x=\"{}\" y=\"{y}\" width=\"{wide}\" height=\"{BOX}\" rx=\"5\"/><text x=\"{x}\" y=\"{}\">{name}</text>\n",
            x - wide / 2,
            y + BOX / 2 + 5
        ));
    }
    drawn.push_str("</svg>");
    Ok(drawn)
}

/// The arrows of a flowchart and the nodes without any.
fn edges(text: &str) -> Result<(Vec<Edge<'_>>, Vec<&str>)> {
    let (mut edges, mut lone) = (Vec::new(), Vec::new());
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("flowchart")) {
        match line.split_once(" --> ") {
            Some((from, to)) => edges.push((from.trim(), to.trim())),
            None if !line.contains(' ') => lone.push(line),
            None => bail!("`{line}` of a diagram is not `a --> b`"),
        }
    }
    Ok((edges, lone))
}

/// The rows of the nodes, from the top, each in its order.
fn arranged<'a>(edges: &[Edge<'a>]) -> Vec<Vec<&'a str>> {
    let names: BTreeSet<&str> = edges.iter().flat_map(|(from, to)| [*from, *to]).collect();
    let mut depth: BTreeMap<&str, usize> = names.iter().map(|name| (*name, 0)).collect();
    // A node's row is the longest way to it; more passes than nodes would be a circle.
    for _ in 0..names.len() {
        for (from, to) in edges {
            let below = depth[from] + 1;
            if depth[to] < below && below < names.len() {
                depth.insert(to, below);
            }
        }
    }
    let mut rows: Vec<Vec<&str>> = vec![Vec::new(); depth.values().max().map_or(0, |deepest| deepest + 1)];
    names.iter().for_each(|name| rows[depth[name]].push(name));
    for _ in 0..8 {
        for index in 0..rows.len() {
            let place: BTreeMap<&str, f64> = rows
                .iter()
                .flat_map(|row| row.iter().enumerate().map(|(i, name)| (*name, (i as f64 + 0.5) / row.len() as f64)))
                .collect();
            let mean = |name: &str| {
                let near: Vec<f64> = edges
                    .iter()
                    .filter_map(|(from, to)| match name {
                        _ if *to == name => Some(place[from]),
                        _ if *from == name => Some(place[to]),
                        _ => None,
                    })
                    .collect();
                near.iter().sum::<f64>() / near.len().max(1) as f64
            };
            rows[index].sort_by(|a, b| mean(a).total_cmp(&mean(b)));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_below_all_that_lead_to_it() {
        let rows = arranged(&[("a", "b"), ("b", "c"), ("a", "c")]);
        assert_eq!(rows, [["a"], ["b"], ["c"]]);
        let drawn = svg("flowchart TD\n    a --> b\n    c\n", "t").expect("a diagram");
        assert_eq!(drawn.matches("<rect").count(), 3);
        assert_eq!(drawn.matches("<path").count(), 1);
        assert!(svg("a - b", "t").is_err());
    }
}
