//! Which rows are positive at which columns: labels carried up the tree.

use crate::data::Csr;
use crate::tree::{LabelTree, NODE, TreeLayer};
use rayon::prelude::*;
use std::ops::Range;

/// Number of rows carried up the tree in one task.
const RUN: usize = 1 << 12;

/// The positives of one layer: for each parent, the pairs (row, child) where the row has a label at or below the child,
/// in ascending order of row and child.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Positives {
    starts: Vec<usize>,
    rows: Vec<u32>,
    children: Vec<u32>,
    values: Vec<f32>,
}

/// The columns of one layer at which some rows are positive, row by row, with their values.
struct Part {
    rows: Range<usize>,
    ends: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f32>,
}

impl Part {
    fn of(rows: Range<usize>) -> Self {
        let ends = Vec::with_capacity(rows.len());
        Self { rows, ends, columns: Vec::new(), values: Vec::new() }
    }

    /// Appends a row.
    fn push(&mut self, row: &[(u32, u32, f32)]) {
        self.columns.extend(row.iter().map(|e| e.0));
        self.values.extend(row.iter().map(|e| e.2));
        self.ends.push(self.columns.len());
    }
}

/// Sums the values of each column; columns are sorted.
fn sum_columns(found: &mut Vec<(u32, u32, f32)>) {
    found.dedup_by(|b, a| {
        let same = a.0 == b.0;
        if same {
            a.2 += b.2;
        }
        same
    });
}

/// The pairs of one parent.
#[derive(Debug, Clone, Copy)]
pub struct Pairs<'a> {
    /// Rows, ascending, one entry per pair.
    pub rows: &'a [u32],
    /// The child's index among the parent's children.
    pub children: &'a [u32],
    /// The sum of the row's values at and below the child.
    pub values: &'a [f32],
}

impl Positives {
    /// The pairs of parent `p`.
    pub fn of(&self, p: usize) -> Pairs<'_> {
        let span = self.starts[p]..self.starts[p + 1];
        Pairs {
            rows: &self.rows[span.clone()],
            children: &self.children[span.clone()],
            values: &self.values[span],
        }
    }

    /// Carries the rows' labels (non-zero entries) up the tree: one `Positives` per layer. `values` replace those of
    /// `y` and are summed on the way; a pair whose sum is 0 is kept.
    ///
    /// A label with several slots is positive at each of them, and counts once where several are below the same child.
    /// Cost: non-zeros of `y` × slots per label × layers.
    pub fn of_labels(y: &Csr, values: &[f32], tree: &LabelTree) -> Vec<Self> {
        let layers = tree.layers();
        let places = Places::new(tree);
        // If each label has one slot, labels may be summed on the way; otherwise they must be kept apart up to the
        // root.
        let several = tree.slots() > tree.labels();
        let climb = |found: &mut Vec<Vec<(u32, u32, f32)>>, rows: Range<usize>| {
            let mut parts: Vec<Part> = layers.iter().map(|_| Part::of(rows.clone())).collect();
            for i in rows {
                found.iter_mut().for_each(Vec::clear);
                let values = &values[y.indptr()[i]..y.indptr()[i + 1]];
                for ((label, _), value) in y.row(i).iter().zip(values).filter(|((_, v), _)| *v != 0.0) {
                    for &(layer, column) in places.slots(label) {
                        found[layer as usize].push((column, if several { label } else { 0 }, *value));
                    }
                }
                for t in (0..layers.len()).rev() {
                    let (above, here) = found.split_at_mut(t);
                    let here = &mut here[0];
                    here.sort_unstable_by_key(|e| (e.0, e.1));
                    if several {
                        here.dedup_by_key(|e| (e.0, e.1))
                    } else {
                        sum_columns(here)
                    }
                    if let Some(above) = above.last_mut() {
                        above.extend(here.iter().map(|(c, l, v)| (places.above[t][*c as usize], *l, *v)));
                    }
                    sum_columns(here);
                    parts[t].push(here);
                }
            }
            parts
        };
        let runs: Vec<Vec<Part>> = (0..y.rows().div_ceil(RUN))
            .into_par_iter()
            .map_init(
                // Column, label, value.
                || vec![Vec::new(); layers.len()],
                |found, run| climb(found, run * RUN..((run + 1) * RUN).min(y.rows())),
            )
            .collect();
        let mut by_layer: Vec<Vec<Part>> = layers.iter().map(|_| Vec::new()).collect();
        for parts in runs {
            by_layer.iter_mut().zip(parts).for_each(|(layer, part)| layer.push(part));
        }
        by_layer.into_par_iter().zip(layers).map(|(parts, layer)| Self::by_parent(&parts, layer)).collect()
    }

    fn by_parent(parts: &[Part], layer: &TreeLayer) -> Self {
        let mut parent_of = vec![0u32; layer.columns()];
        for p in 0..layer.parents() {
            parent_of[layer.children(p)].fill(p as u32);
        }
        let mut starts = vec![0usize; layer.parents() + 1];
        for c in parts.iter().flat_map(|part| &part.columns) {
            starts[parent_of[*c as usize] as usize + 1] += 1;
        }
        for p in 0..layer.parents() {
            starts[p + 1] += starts[p];
        }
        let mut next = starts.clone();
        let n = starts[layer.parents()];
        let mut out = Self { starts, rows: vec![0; n], children: vec![0; n], values: vec![0.0; n] };
        for part in parts {
            let mut begin = 0;
            for (i, end) in part.rows.clone().zip(&part.ends) {
                for e in begin..*end {
                    let parent = parent_of[part.columns[e] as usize] as usize;
                    let at = next[parent];
                    next[parent] += 1;
                    out.rows[at] = i as u32;
                    out.children[at] = part.columns[e] - layer.starts[parent];
                    out.values[at] = part.values[e];
                }
                begin = *end;
            }
        }
        out
    }

    /// No pairs under any of these parents.
    pub fn none(parents: usize) -> Self {
        Self { starts: vec![0; parents + 1], ..Self::default() }
    }

    /// Pairs of each parent with these rows, ascending, all with child 0.
    pub fn of_rows(by_parent: &[Vec<u32>]) -> Self {
        let rows = by_parent.concat();
        let starts = std::iter::once(0).chain(by_parent.iter().scan(0, |end, rows| {
            *end += rows.len();
            Some(*end)
        }));
        Self { starts: starts.collect(), children: vec![0; rows.len()], values: vec![1.0; rows.len()], rows }
    }

    /// The pairs of both, parent by parent; rows are then no longer in ascending order.
    pub fn and(&self, other: Self) -> Self {
        let parents = self.starts.len() - 1;
        let both = |p| [self.of(p).rows, other.of(p).rows].concat();
        Self::of_rows(&(0..parents).map(both).collect::<Vec<_>>())
    }

    /// The row of each pair, and its value for modification.
    pub fn values_mut(&mut self) -> (&[u32], &mut [f32]) {
        (&self.rows, &mut self.values)
    }
}

/// The positions of labels in a tree, and the parent column of each column.
struct Places {
    starts: Vec<u32>,
    slots: Vec<(u32, u32)>,
    above: Vec<Vec<u32>>,
}

impl Places {
    fn new(tree: &LabelTree) -> Self {
        let mut starts = vec![0u32; tree.labels() + 1];
        let mut above = vec![Vec::new()];
        let each_slot = |f: &mut dyn FnMut(u32, u32, u32)| {
            for (t, layer) in tree.layers().iter().enumerate() {
                for (c, label) in layer.labels.iter().enumerate().filter(|(_, l)| **l != NODE) {
                    f(*label, t as u32, c as u32);
                }
            }
        };
        each_slot(&mut |label, _, _| starts[label as usize + 1] += 1);
        for l in 0..tree.labels() {
            starts[l + 1] += starts[l];
        }
        let mut next = starts.clone();
        let mut slots = vec![(0, 0); starts[tree.labels()] as usize];
        each_slot(&mut |label, layer, column| {
            slots[next[label as usize] as usize] = (layer, column);
            next[label as usize] += 1;
        });
        for pair in tree.layers().windows(2) {
            let nodes = (0u32..).zip(&pair[0].labels).filter(|(_, l)| **l == NODE);
            let mut up = vec![0u32; pair[1].columns()];
            for (p, (column, _)) in nodes.enumerate() {
                up[pair[1].children(p)].fill(column);
            }
            above.push(up);
        }
        Self { starts, slots, above }
    }

    fn slots(&self, label: u32) -> &[(u32, u32)] {
        &self.slots[self.starts[label as usize] as usize..self.starts[label as usize + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::tree::TreeLayer;
    use std::collections::BTreeMap;

    /// Two to four children per node, slots in every layer, `copies` labels with a second slot.
    fn random_tree(rng: &mut Rng, labels: u32, copies: usize) -> LabelTree {
        let mut layers = vec![];
        let mut nodes = 1;
        while layers.len() < 3 {
            let (mut starts, mut of) = (vec![0], vec![]);
            for _ in 0..nodes {
                of.extend(std::iter::repeat_n(NODE, 2 + rng.below(3) as usize));
                starts.push(of.len() as u32);
            }
            nodes = of.len();
            layers.push(TreeLayer { starts, labels: of });
        }
        // Every node of the last layer gets a leaf; the labels are placed anywhere.
        let mut slots_of: Vec<Vec<Vec<u32>>> = layers.iter().map(|l| vec![vec![]; l.parents()]).collect();
        slots_of.push((0..nodes as u32).map(|n| vec![n % labels]).collect());
        let again = (0..copies).map(|_| rng.below(labels)).collect::<Vec<_>>();
        for label in (0..labels).chain(again) {
            let t = rng.below(4) as usize;
            let parents = slots_of[t].len() as u32;
            let own = &mut slots_of[t][rng.below(parents) as usize];
            if !own.contains(&label) {
                own.push(label);
            }
        }
        for label in 0..labels {
            if !slots_of.iter().flatten().flatten().any(|l| *l == label) {
                slots_of[0][0].push(label);
            }
        }
        layers.push(TreeLayer { starts: (0..=nodes as u32).collect(), labels: vec![NODE; 0] });
        let layers = layers.iter().zip(&slots_of).map(|(layer, slots_of)| {
            let (mut starts, mut of) = (vec![0], vec![]);
            for (p, own) in slots_of.iter().enumerate() {
                if layer.columns() > 0 {
                    of.extend_from_slice(&layer.labels[layer.children(p)]);
                }
                of.extend_from_slice(own);
                starts.push(of.len() as u32);
            }
            TreeLayer { starts, labels: of }
        });
        LabelTree::new(labels as usize, layers.collect()).unwrap()
    }

    /// The labels at and below a column; a label with several slots occurs several times.
    fn below(tree: &LabelTree, t: usize, column: usize) -> Vec<u32> {
        let layer = &tree.layers()[t];
        if layer.labels[column] != NODE {
            return vec![layer.labels[column]];
        }
        let node = layer.labels[..column].iter().filter(|l| **l == NODE).count();
        tree.layers()[t + 1].children(node).flat_map(|c| below(tree, t + 1, c)).collect()
    }

    fn random_labels(rng: &mut Rng, rows: usize, labels: u32) -> Csr {
        let (mut indptr, mut indices, mut values) = (vec![0], vec![], vec![]);
        for _ in 0..rows {
            for l in 0..labels {
                if rng.below(4) == 0 {
                    indices.push(l);
                    values.push(rng.below(4) as f32 * 0.5); // some explicit zeros
                }
            }
            indptr.push(indices.len());
        }
        Csr::new(rows, labels as usize, indptr, indices, values).unwrap()
    }

    #[test]
    fn pairs_are_what_a_walk_down_from_each_child_finds() {
        for seed in 0..60 {
            let mut rng = Rng::new(&[seed]);
            let tree = random_tree(&mut rng, 12, seed as usize % 9);
            let y = random_labels(&mut rng, 15, 12);
            let weights: Vec<f32> = (0..y.nnz()).map(|_| rng.below(5) as f32).collect();
            let layers = Positives::of_labels(&y, &weights, &tree);
            assert_eq!(layers.len(), tree.layers().len());
            for (t, layer) in tree.layers().iter().enumerate() {
                for p in 0..layer.parents() {
                    // (row, child) with the sum over its labels, each counted once, in this order.
                    let mut want: BTreeMap<(u32, u32), f32> = BTreeMap::new();
                    for (child, column) in layer.children(p).enumerate() {
                        let mut labels = below(&tree, t, column);
                        labels.sort_unstable();
                        labels.dedup();
                        for label in labels {
                            for i in 0..y.rows() {
                                let span = y.indptr()[i]..y.indptr()[i + 1];
                                for e in span.filter(|e| y.indices()[*e] == label && y.values()[*e] != 0.0) {
                                    *want.entry((i as u32, child as u32)).or_default() += weights[e];
                                }
                            }
                        }
                    }
                    let pairs = layers[t].of(p);
                    let keys: Vec<_> =
                        pairs.rows.iter().copied().zip(pairs.children.iter().copied()).collect();
                    assert_eq!(
                        keys,
                        want.keys().copied().collect::<Vec<_>>(),
                        "seed {seed} layer {t} node {p}"
                    );
                    assert_eq!(pairs.values, want.values().copied().collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn lists_of_rows_are_put_together() {
        let a = Positives::of_rows(&[vec![1, 4], vec![], vec![2]]);
        let b = Positives::of_rows(&[vec![0], vec![3, 5], vec![]]);
        let both = a.and(b);
        let rows: Vec<_> = (0..3).map(|p| both.of(p).rows.to_vec()).collect();
        assert_eq!(rows, [vec![1, 4, 0], vec![3, 5], vec![2]]);
        let none = Positives::none(3).and(both.clone());
        assert_eq!(none, both);
        assert!(Positives::none(2).of(1).rows.is_empty());
    }
}
