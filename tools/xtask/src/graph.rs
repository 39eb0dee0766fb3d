//! Cycles in a directed graph.

use std::collections::BTreeMap;

/// Finds the cycles of a graph: its strongly connected components of more than one node, each
/// sorted, in order.
///
/// `edges` maps a node to the nodes that it points to. Targets that are not keys are ignored.
pub fn cycles<N: Ord + Copy>(edges: &BTreeMap<N, Vec<N>>) -> Vec<Vec<N>> {
    let mut search = Search { edges, marks: BTreeMap::new(), stack: Vec::new(), found: Vec::new() };
    for node in edges.keys() {
        if !search.marks.contains_key(node) {
            search.visit(*node);
        }
    }
    search.found.sort();
    search.found
}

/// Tarjan's search for strongly connected components.
struct Search<'a, N> {
    edges: &'a BTreeMap<N, Vec<N>>,
    /// The order in which a node was reached, and the earliest node on the stack that it reaches.
    marks: BTreeMap<N, (usize, usize)>,
    stack: Vec<N>,
    found: Vec<Vec<N>>,
}

impl<N: Ord + Copy> Search<'_, N> {
    /// Visits a node and all that it reaches; returns the earliest node on the stack that it
    /// reaches.
    fn visit(&mut self, node: N) -> usize {
        let index = self.marks.len();
        self.marks.insert(node, (index, index));
        self.stack.push(node);
        let mut low = index;
        for target in self.edges.get(&node).into_iter().flatten() {
            match self.marks.get(target) {
                None if self.edges.contains_key(target) => low = low.min(self.visit(*target)),
                Some((reached, _)) if self.stack.contains(target) => low = low.min(*reached),
                _ => {}
            }
        }
        self.marks.insert(node, (index, low));
        if low == index
            && let Some(start) = self.stack.iter().position(|other| *other == node)
        {
            let mut component = self.stack.split_off(start);
            component.sort();
            if component.len() > 1 {
                self.found.push(component);
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles_of(edges: &[(u8, &[u8])]) -> Vec<Vec<u8>> {
        cycles(&edges.iter().map(|(node, targets)| (*node, targets.to_vec())).collect())
    }

    #[test]
    fn cycles_are_found_and_chains_are_not() {
        assert_eq!(cycles_of(&[(1, &[2]), (2, &[3]), (3, &[])]), [[0u8; 0]; 0]);
        assert_eq!(cycles_of(&[(1, &[2]), (2, &[1]), (3, &[1])]), [[1, 2]]);
        assert_eq!(cycles_of(&[(1, &[2]), (2, &[3]), (3, &[1]), (4, &[5]), (5, &[4, 1])]), [vec![1, 2, 3], vec![4, 5]]);
    }

    #[test]
    fn a_node_that_points_to_itself_is_no_cycle() {
        assert_eq!(cycles_of(&[(1, &[1])]), [[0u8; 0]; 0]);
    }
}
