//! Which rows are positive where: labels carried up the tree.

use crate::data::Csr;
use crate::tree::{LabelTree, NODE};

/// The positives of one layer: for each parent the pairs (row, child) where the row has a label at or below the
/// child, ascending by row and child.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Positives {
    starts: Vec<usize>,
    rows: Vec<u32>,
    children: Vec<u32>,
    values: Vec<f32>,
}

/// The pairs of one parent.
#[derive(Debug, Clone, Copy)]
pub struct Pairs<'a> {
    /// Rows, ascending, one entry a pair.
    pub rows: &'a [u32],
    /// The child's place among the parent's children.
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

    /// Carries the rows' labels (non-zero entries) up the tree: one `Positives` a layer.
    ///
    /// A label with several slots is positive at each of them. Cost: non-zeros of `y` × slots a label × layers.
    pub fn of_labels(y: &Csr, tree: &LabelTree) -> Vec<Self> {
        let layers = tree.layers();
        let places = Places::new(tree);
        let mut found: Vec<Vec<(u32, f32)>> = vec![Vec::new(); layers.len()];
        let mut by_row: Vec<(Vec<usize>, Vec<u32>, Vec<f32>)> = vec![(vec![0], vec![], vec![]); layers.len()];
        for row in y.iter_rows() {
            found.iter_mut().for_each(Vec::clear);
            for (label, value) in row.iter().filter(|e| e.1 != 0.0) {
                for &(layer, column) in places.slots(label) {
                    found[layer as usize].push((column, value));
                }
            }
            for t in (0..layers.len()).rev() {
                let (above, here) = found.split_at_mut(t);
                let here = &mut here[0];
                here.sort_unstable_by_key(|e| e.0);
                here.dedup_by(|b, a| {
                    let same = a.0 == b.0;
                    if same {
                        a.1 += b.1;
                    }
                    same
                });
                if let Some(above) = above.last_mut() {
                    above.extend(here.iter().map(|(c, v)| (places.above[t][*c as usize], *v)));
                }
                let (ptr, columns, values) = &mut by_row[t];
                columns.extend(here.iter().map(|e| e.0));
                values.extend(here.iter().map(|e| e.1));
                ptr.push(columns.len());
            }
        }
        by_row.into_iter().zip(layers).map(|(rows, layer)| Self::by_parent(rows, layer)).collect()
    }

    fn by_parent(
        (ptr, columns, values): (Vec<usize>, Vec<u32>, Vec<f32>),
        layer: &crate::tree::TreeLayer,
    ) -> Self {
        let mut parent_of = vec![0u32; layer.columns()];
        for p in 0..layer.parents() {
            parent_of[layer.children(p)].fill(p as u32);
        }
        let mut starts = vec![0usize; layer.parents() + 1];
        for c in &columns {
            starts[parent_of[*c as usize] as usize + 1] += 1;
        }
        for p in 0..layer.parents() {
            starts[p + 1] += starts[p];
        }
        let mut next = starts.clone();
        let n = columns.len();
        let mut out = Self { starts, rows: vec![0; n], children: vec![0; n], values: vec![0.0; n] };
        for i in 0..ptr.len() - 1 {
            for e in ptr[i]..ptr[i + 1] {
                let parent = parent_of[columns[e] as usize] as usize;
                let at = next[parent];
                next[parent] += 1;
                out.rows[at] = i as u32;
                out.children[at] = columns[e] - layer.starts[parent];
                out.values[at] = values[e];
            }
        }
        out
    }

    /// No pairs under any of these parents.
    pub fn none(parents: usize) -> Self {
        Self { starts: vec![0; parents + 1], ..Self::default() }
    }

    /// Pairs of each parent and these rows, ascending; all with child 0.
    pub fn of_rows(by_parent: &[Vec<u32>]) -> Self {
        let rows = by_parent.concat();
        let starts = std::iter::once(0).chain(by_parent.iter().scan(0, |end, rows| {
            *end += rows.len();
            Some(*end)
        }));
        Self { starts: starts.collect(), children: vec![0; rows.len()], values: vec![1.0; rows.len()], rows }
    }

    /// The pairs of both, parent by parent; rows are no longer ascending.
    pub fn and(&self, other: Self) -> Self {
        let parents = self.starts.len() - 1;
        let both = |p| [self.of(p).rows, other.of(p).rows].concat();
        Self::of_rows(&(0..parents).map(both).collect::<Vec<_>>())
    }

    /// The row of each pair, and the values, to be changed.
    pub fn values_mut(&mut self) -> (&[u32], &mut [f32]) {
        (&self.rows, &mut self.values)
    }
}

/// Where labels stand in a tree, and which column of the layer above each column hangs under.
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
