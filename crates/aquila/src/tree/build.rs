//! Builds a tree from label vectors.

use super::bisect::Bisection;
use super::kary::Clustering;
use super::points::Points;
use super::{LabelTree, LabelVectors, NODE, TreeLayer};
use crate::control::Control;
use crate::error::{Result, fail};
use crate::rng::Rng;

/// How nodes are split.
#[derive(Debug, Clone, Copy)]
pub enum Split {
    /// Halves of equal size down to the leaves, then regrouped to the arity.
    Balanced(Bisection),
    /// Clusters of any size at each node.
    Kary(Clustering),
}

/// The shape of a tree.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Maximum number of labels under a leaf node.
    pub max_leaf: usize,
    /// Maximum number of children of an inner node.
    pub arity: usize,
    /// How nodes are split.
    pub split: Split,
}

/// A tree under construction.
#[derive(Debug)]
enum Nested {
    Labels(Vec<u32>),
    Nodes(Vec<Nested>),
}

/// Clusters labels into a tree. Labels with empty vectors are placed together under a separate node below the last
/// child of the root: the tree keeps them, but no search reaches them before other labels.
pub fn build(vectors: impl Into<LabelVectors>, shape: &Shape, control: &Control) -> Result<LabelTree> {
    let Shape { max_leaf, arity, .. } = *shape;
    if max_leaf < 1 || arity < 2 {
        fail!(
            InvalidArgument,
            "Expected leaves of at least 1 and an arity of at least 2 but received {max_leaf} and {arity}"
        );
    }
    let vectors = vectors.into();
    let labels = vectors.rows();
    let empty: Vec<u32> = (0..labels as u32).filter(|l| vectors.is_empty(*l as usize)).collect();
    let points = Points::new(vectors);
    if points.len() <= shape.max_leaf {
        return layers(labels, Nested::Labels([points.labels, empty].concat()));
    }
    let mut root = control.install(|| match shape.split {
        Split::Balanced(bisection) => {
            let depth = (points.len().div_ceil(shape.max_leaf)).next_power_of_two().trailing_zeros();
            let mut leaves = vec![Vec::new(); 1 << depth];
            halves(points, bisection, 1, &mut leaves, control)?;
            Ok(regroup(leaves, shape.arity))
        }
        Split::Kary(clustering) => clusters(points, clustering, shape, &[control.seed], control),
    })??;
    if !empty.is_empty()
        && let Nested::Nodes(children) = &mut root
    {
        // Same depth as the other children: a layer of only nodes is searched faster than one of nodes and labels.
        let depth = children.iter().map(Nested::depth).max().unwrap_or(0);
        children.push((0..depth).fold(Nested::Labels(empty), |below, _| Nested::Nodes(vec![below])));
    }
    layers(labels, root)
}

impl Nested {
    /// Number of inner nodes on the longest path down to a leaf node.
    fn depth(&self) -> usize {
        match self {
            Self::Labels(_) => 0,
            Self::Nodes(children) => 1 + children.iter().map(Self::depth).max().unwrap_or(0),
        }
    }
}

/// Fills `leaves` (their number is a power of two) from left to right by balanced splits. Where leaves hold one label,
/// some stay empty.
pub(crate) fn halves(
    points: Points,
    how: Bisection,
    node: u64,
    leaves: &mut [Vec<u32>],
    control: &Control,
) -> Result<()> {
    if leaves.len() == 1 || points.len() <= 1 {
        leaves[0] = points.labels;
        return Ok(());
    }
    let (left, right) = how.split(&points, Rng::new(&[control.seed, node]), control)?;
    let (left, right) = rayon::join(|| points.subset(&left), || points.subset(&right));
    drop(points);
    control.check()?;
    let (first, second) = leaves.split_at_mut(leaves.len() / 2);
    let (a, b) = rayon::join(
        || halves(left, how, node * 2, first, control),
        || halves(right, how, node * 2 + 1, second, control),
    );
    a.and(b)
}

/// Joins neighbours until at most `arity` nodes are left under the root. The tree has as few layers as the arity
/// allows; fan-outs are as even as powers of two allow, and the root's is the smallest. (Filling nodes up to the arity
/// from the bottom would leave the remainder to the root: 128 leaves at arity 64 would give it two children, which
/// costs up to a point of P@1.)
fn regroup(leaves: Vec<Vec<u32>>, arity: usize) -> Nested {
    let mut nodes: Vec<Nested> = leaves.into_iter().filter(|l| !l.is_empty()).map(Nested::Labels).collect();
    while nodes.len() > arity {
        let layers = (nodes.len() as f64).log(arity as f64).ceil().max(2.0);
        let even = (nodes.len() as f64).powf(1.0 / layers).ceil() as usize;
        let group = even.next_power_of_two().min(arity);
        let mut rest = nodes.into_iter();
        nodes = Vec::new();
        while rest.len() > 0 {
            nodes.push(Nested::Nodes(rest.by_ref().take(group).collect()));
        }
    }
    Nested::Nodes(nodes)
}

fn clusters(
    points: Points,
    how: Clustering,
    shape: &Shape,
    path: &[u64],
    control: &Control,
) -> Result<Nested> {
    if points.len() <= shape.max_leaf {
        return Ok(Nested::Labels(points.labels));
    }
    let parts = how.split(&points, Rng::new(path), control)?;
    let children: Vec<Points> = parts.iter().map(|p| points.subset(p)).collect();
    drop(points);
    use rayon::prelude::*;
    let children: Result<Vec<Nested>> = children
        .into_par_iter()
        .enumerate()
        .map(|(i, child)| {
            let mut rng = Rng::new(path);
            let here = rng.next_u64();
            clusters(child, how, shape, &[here, i as u64 + 1], control)
        })
        .collect();
    Ok(Nested::Nodes(children?))
}

/// Converts nested nodes into layers, breadth first.
fn layers(labels: usize, root: Nested) -> Result<LabelTree> {
    let mut layers = Vec::new();
    let mut level = vec![root];
    while !level.is_empty() {
        let mut layer = TreeLayer { starts: vec![0], labels: Vec::new() };
        let mut next = Vec::new();
        for node in level {
            match node {
                Nested::Labels(labels) => layer.labels.extend(labels),
                Nested::Nodes(children) => {
                    layer.labels.extend(std::iter::repeat_n(NODE, children.len()));
                    next.extend(children);
                }
            }
            layer.starts.push(layer.labels.len() as u32);
        }
        layers.push(layer);
        level = next;
    }
    LabelTree::new(labels, layers)
}
