//! Finding regions whose bases lead back to them.

/// The nodes on cycles of a graph of `count` nodes (and those between two cycles), ascending. `edges` are pairs of a
/// base and what needs it, sorted, each once.
///
/// # Complexity
/// Linear in nodes and edges, without recursion.
pub(crate) fn cyclic(count: usize, edges: &[(u32, u32)]) -> Vec<u32> {
    // What is not downstream of a cycle goes first, then what no cycle is downstream of.
    let after = not_reached(count, edges);
    let mut backwards: Vec<(u32, u32)> = edges
        .iter()
        .filter(|(from, to)| after[*from as usize] && after[*to as usize])
        .map(|(from, to)| (*to, *from))
        .collect();
    backwards.sort_unstable();
    let before = not_reached(count, &backwards);
    (0u32..)
        .zip(after.iter().zip(&before))
        .filter(|(_, (after, before))| **after && **before)
        .map(|(at, _)| at)
        .collect()
}

/// Which nodes cannot be put in an order in which every edge leads forward.
fn not_reached(count: usize, edges: &[(u32, u32)]) -> Vec<bool> {
    let mut to_come = vec![0u32; count];
    for (_, to) in edges {
        to_come[*to as usize] += 1;
    }
    let mut free: Vec<u32> = (0u32..).zip(&to_come).filter(|(_, count)| **count == 0).map(|(node, _)| node).collect();
    while let Some(node) = free.pop() {
        let start = edges.partition_point(|(from, _)| *from < node);
        for (_, to) in edges[start..].iter().take_while(|(from, _)| *from == node) {
            to_come[*to as usize] -= 1;
            if to_come[*to as usize] == 0 {
                free.push(*to);
            }
        }
    }
    to_come.into_iter().map(|count| count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_what_leads_back_is_cyclic() {
        assert_eq!(cyclic(4, &[(0, 1), (1, 2), (2, 3)]), [0u32; 0]);
        // 0 feeds the cycle 1-2, which feeds 3; 4 is on its own.
        assert_eq!(cyclic(5, &[(0, 1), (1, 2), (2, 1), (2, 3)]), [1, 2]);
        assert_eq!(cyclic(2, &[(1, 1)]), [1]);
        let chain: Vec<_> = (0..100_000).map(|at| (at, at + 1)).collect();
        assert!(cyclic(100_001, &chain).is_empty());
    }

    proptest! {
        #[test]
        fn cyclic_is_what_reaches_a_cycle_both_ways(edges in prop::collection::btree_set((0u32..8, 0u32..8), 0..20)) {
            let edges: Vec<_> = edges.into_iter().collect();
            let mut reach = [[false; 8]; 8];
            for (from, to) in &edges {
                reach[*from as usize][*to as usize] = true;
            }
            for over in 0..8 {
                for from in 0..8 {
                    for to in 0..8 {
                        reach[from][to] |= reach[from][over] && reach[over][to];
                    }
                }
            }
            let on_cycle = |node: usize| reach[node][node];
            let expected: Vec<u32> = (0..8usize)
                .filter(|node| {
                    let from_one = on_cycle(*node) || (0..8).any(|other| on_cycle(other) && reach[other][*node]);
                    let to_one = on_cycle(*node) || (0..8).any(|other| on_cycle(other) && reach[*node][other]);
                    from_one && to_one
                })
                .map(|node| u32::try_from(node).expect("small"))
                .collect();
            prop_assert_eq!(cyclic(8, &edges), expected);
        }
    }
}
