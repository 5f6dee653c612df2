//! Trees in and out, against a recursive reference, and every bad input with its code.

use aquila::tree::{LabelTree, NODE, TreeLayer};
use aquila::{Csr, ErrorCode, Result};
use proptest::prelude::*;

/// A tree as one would write it down; the reference for everything below works on this.
#[derive(Debug, Clone, PartialEq)]
enum Nest {
    Label(u32),
    Node(Vec<Nest>),
}
use Nest::{Label, Node};

impl Nest {
    fn children(&self) -> &[Nest] {
        match self {
            Label(_) => &[],
            Node(children) => children,
        }
    }

    fn depth(&self) -> usize {
        self.children().iter().map(|c| 1 + c.depth()).max().unwrap_or(0)
    }

    fn write(&self) -> String {
        match self {
            Label(l) => l.to_string(),
            Node(c) => format!("[{}]", c.iter().map(Nest::write).collect::<Vec<_>>().join(", ")),
        }
    }

    fn json(&self, labels: usize) -> String {
        format!(r#"{{ "root": {}, "labels": {labels}, "aquilaTree": 1 }}"#, self.write())
    }

    /// Each label in an upper layer goes down to `depth` through nodes with a single child; leaves are sorted.
    fn padded(&self, depth: usize) -> Nest {
        match self {
            Label(_) if depth == 0 => self.clone(),
            Label(_) => Node(vec![self.padded(depth - 1)]),
            Node(c) => {
                let mut c: Vec<Nest> = c.iter().map(|c| c.padded(depth - 1)).collect();
                c.sort_by_key(|c| match c {
                    Label(l) => *l,
                    Node(_) => 0,
                });
                Node(c)
            }
        }
    }

    /// The root's inner nodes make way for their children; a label already met is left out.
    fn collapsed(&self) -> Nest {
        let mut kept: Vec<Nest> = Vec::new();
        for child in self.children() {
            let now = if let Node(c) = child { c.clone() } else { vec![child.clone()] };
            for c in now {
                if matches!(c, Node(_)) || !kept.contains(&c) {
                    kept.push(c);
                }
            }
        }
        Node(kept)
    }

    /// Layers by breadth first search.
    fn tree(&self, labels: usize) -> Result<LabelTree> {
        let (mut layers, mut nodes) = (Vec::new(), vec![self]);
        while !nodes.is_empty() {
            let below: Vec<&Nest> = nodes.iter().flat_map(|n| n.children()).collect();
            let mut starts = vec![0];
            for n in &nodes {
                starts.push(starts.last().unwrap() + n.children().len() as u32);
            }
            let labels = below.iter().map(|c| if let Label(l) = c { *l } else { NODE }).collect();
            layers.push(TreeLayer { starts, labels });
            nodes = below.into_iter().filter(|c| matches!(c, Node(_))).collect();
        }
        LabelTree::new(labels, layers)
    }
}

/// A random tree of mixed depth with its number of labels: each label somewhere, some in several leaves.
fn nest() -> impl Strategy<Value = (Nest, usize)> {
    let shape =
        Just(Label(0)).prop_recursive(5, 40, 5, |inner| prop::collection::vec(inner, 1..6).prop_map(Node));
    (prop::collection::vec(shape, 1..6).prop_map(Node), prop::collection::vec(any::<u32>(), 64)).prop_map(
        |(mut nest, dice)| {
            let slots = count(&nest);
            let labels = 1 + dice[0] as usize % slots;
            // The first `labels` slots of a shuffled list hold each label once, the others any.
            let mut values: Vec<u32> = (0..slots)
                .map(|i| if i < labels { i as u32 } else { dice[i % 64] % labels as u32 })
                .collect();
            for i in (1..slots).rev() {
                values.swap(i, dice[(i + 7) % 64] as usize % (i + 1));
            }
            assign(&mut nest, &mut values.into_iter());
            (nest, labels)
        },
    )
}

fn count(nest: &Nest) -> usize {
    if let Label(_) = nest { 1 } else { nest.children().iter().map(count).sum() }
}

fn assign(nest: &mut Nest, values: &mut impl Iterator<Item = u32>) {
    match nest {
        Label(l) => *l = values.next().unwrap(),
        Node(children) => {
            children.iter_mut().for_each(|c| assign(c, values));
            let all = std::mem::take(children);
            for c in all {
                if matches!(c, Node(_)) || !children.contains(&c) {
                    children.push(c);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn json_round_trip((nest, labels) in nest()) {
        let tree = nest.tree(labels).unwrap();
        prop_assert_eq!(&LabelTree::from_json(&nest.json(labels)).unwrap(), &tree);
        let text = tree.to_json();
        prop_assert_eq!(&LabelTree::from_json(&text).unwrap(), &tree);
        // What is written is what one would write by hand.
        let ours: serde_json::Value = serde_json::from_str(&text).unwrap();
        let by_hand: serde_json::Value = serde_json::from_str(&nest.json(labels)).unwrap();
        prop_assert_eq!(ours, by_hand);
    }

    #[test]
    fn chain_round_trip((nest, labels) in nest()) {
        let tree = nest.tree(labels).unwrap();
        let chain = tree.to_chain().unwrap();
        prop_assert_eq!(chain.len(), nest.depth());
        let back = LabelTree::from_chain(&chain).unwrap();
        let padded = nest.padded(nest.depth());
        prop_assert_eq!(&back, &padded.tree(labels).unwrap());
        // Padded once, always padded.
        prop_assert_eq!(back.to_chain().unwrap(), chain);
    }

    /// Rows of every matrix renumbered at random: the same tree, except for the order of children.
    #[test]
    fn chain_rows_in_any_order((nest, labels) in nest(), seed in any::<u64>()) {
        let tree = nest.tree(labels).unwrap();
        let mut chain = tree.to_chain().unwrap();
        let mut state = seed;
        let mut names: Vec<Vec<u32>> = Vec::new();
        for t in 0..chain.len() - 1 {
            let mut name: Vec<u32> = (0..chain[t].rows() as u32).collect();
            for i in (1..name.len()).rev() {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                name.swap(i, (state >> 33) as usize % (i + 1));
            }
            chain[t] = renumber(&chain[t].transpose(), &name).transpose();
            chain[t + 1] = renumber(&chain[t + 1], &name);
            names.push(name);
        }
        let (shuffled, order) = LabelTree::from_chain_ordered(&chain).unwrap();
        prop_assert_eq!(paths(&shuffled), paths(&LabelTree::from_chain(&tree.to_chain().unwrap()).unwrap()));
        // Where a column came from: its own row, whose parent is the row its parent came from.
        for (t, layer) in shuffled.layers().iter().enumerate() {
            prop_assert_eq!(order[t].len(), layer.columns());
            for p in 0..layer.parents() {
                let parent = if t == 0 { 0 } else { order[t - 1][p] };
                for c in layer.children(p) {
                    let row = chain[t].row(order[t][c] as usize);
                    prop_assert!(row.indices.contains(&parent));
                }
            }
        }
        prop_assert_eq!(&order[order.len() - 1], &shuffled.layers()[order.len() - 1].labels);
    }

    #[test]
    fn collapse_equals_the_reference((nest, labels) in nest(), times in 0u32..7) {
        let mut expected = nest.clone();
        for _ in 0..times {
            expected = expected.collapsed();
        }
        let tree = nest.tree(labels).unwrap().collapse(times);
        prop_assert_eq!(&tree, &expected.tree(labels).unwrap());
        // Still a tree over all labels by the full check.
        prop_assert_eq!(&LabelTree::new(labels, tree.layers().to_vec()).unwrap(), &tree);
    }

    /// Whatever stands in a text, the answer is a tree or one of the two codes.
    #[test]
    fn foreign_texts_never_panic((nest, labels) in nest(), cut in any::<prop::sample::Index>(), put in "[\\[\\],0-9a-z\":{} .-]{0,6}") {
        let text = nest.json(labels);
        let at = cut.index(text.len());
        for text in [format!("{}{put}{}", &text[..at], &text[at..]), format!("{}{put}", &text[..at])] {
            if let Err(e) = LabelTree::from_json(&text) {
                prop_assert!([ErrorCode::Parse, ErrorCode::BadTree].contains(&e.code()), "{}", e);
            }
        }
    }

    /// Whatever stands in the arrays, the answer is a tree or `BAD_TREE`.
    #[test]
    fn foreign_layers_never_panic(
        labels in 0usize..5,
        layers in prop::collection::vec(
            (prop::collection::vec(0u32..6, 0..4), prop::collection::vec(prop_oneof![0u32..5, Just(NODE)], 0..6)), 0..3),
    ) {
        let layers = layers.into_iter().map(|(starts, labels)| TreeLayer { starts, labels }).collect();
        if let Err(e) = LabelTree::new(labels, layers) {
            prop_assert_eq!(e.code(), ErrorCode::BadTree);
        }
    }
}

/// The columns of a matrix under new names.
fn renumber(m: &Csr, name: &[u32]) -> Csr {
    let indices = m.indices().iter().map(|j| name[*j as usize]).collect();
    Csr::from_unsorted(m.rows(), name.len(), m.indptr().to_vec(), indices, m.values().to_vec()).unwrap()
}

/// A tree without the order of its children: each node as its sorted children.
fn paths(tree: &LabelTree) -> String {
    let mut below: Vec<String> = Vec::new();
    for layer in tree.layers().iter().rev() {
        let mut inner = below.into_iter();
        let names: Vec<String> = layer
            .labels
            .iter()
            .map(|l| if *l == NODE { inner.next().unwrap() } else { l.to_string() })
            .collect();
        below = (0..layer.parents())
            .map(|p| {
                let mut children = names[layer.children(p)].to_vec();
                children.sort();
                format!("[{}]", children.join(","))
            })
            .collect();
    }
    below.remove(0)
}

/// Entries by (row, column), rows ascending.
fn ones(rows: usize, cols: usize, entries: &[(usize, u32)]) -> Csr {
    let mut indptr = vec![0; rows + 1];
    entries.iter().for_each(|e| indptr[e.0 + 1] += 1);
    (0..rows).for_each(|i| indptr[i + 1] += indptr[i]);
    let indices = entries.iter().map(|e| e.1).collect();
    Csr::new(rows, cols, indptr, indices, vec![1.0; entries.len()]).unwrap()
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T>, code: ErrorCode, words: &[&str]) {
    let error = result.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    for word in words {
        assert!(error.message().contains(word), "no {word:?} in: {error}");
    }
}

#[test]
fn shapes_by_hand() {
    // Unbalanced, mixed depth, label 0 in two leaves.
    let tree = LabelTree::from_json(r#"{"aquilaTree":1,"labels":5,"root":[[0,1],4,[2,[3,0]]]}"#).unwrap();
    assert_eq!(
        tree.layers(),
        [
            TreeLayer { starts: vec![0, 3], labels: vec![NODE, 4, NODE] },
            TreeLayer { starts: vec![0, 2, 4], labels: vec![0, 1, 2, NODE] },
            TreeLayer { starts: vec![0, 2], labels: vec![3, 0] },
        ]
    );
    assert_eq!(tree.to_json(), r#"{"aquilaTree":1,"labels":5,"root":[[0,1],4,[2,[3,0]]]}"#);
    let layered = r#"{"aquilaTree":1,"labels":5,"layers":[[[null,4,null]],[[0,1],[2,null]],[[3,0]]]}"#;
    assert_eq!(LabelTree::from_json(layered).unwrap(), tree);

    // Label 4 goes down through node 1 of the first matrix and node 2 of the second.
    let chain = tree.to_chain().unwrap();
    assert_eq!(chain[0], ones(3, 1, &[(0, 0), (1, 0), (2, 0)]));
    assert_eq!(chain[1], ones(5, 3, &[(0, 0), (1, 0), (2, 1), (3, 2), (4, 2)]));
    assert_eq!(chain[2], ones(5, 5, &[(0, 0), (0, 4), (1, 1), (2, 3), (3, 4), (4, 2)]));

    // Once: label 0 is placed under the root and still under the lower node. Twice: flat, label 0 but once.
    assert_eq!(tree.clone().collapse(0), tree);
    let once = tree.clone().collapse(1);
    assert_eq!(once.to_json(), r#"{"aquilaTree":1,"labels":5,"root":[0,1,4,2,[3,0]]}"#);
    assert_eq!(tree.clone().collapse(2).to_json(), r#"{"aquilaTree":1,"labels":5,"root":[0,1,4,2,3]}"#);
    assert_eq!(tree.clone().collapse(u32::MAX), tree.collapse(2));
}

#[test]
fn the_smallest_trees() {
    let one = LabelTree::flat(1).unwrap();
    assert_eq!(one.to_json(), r#"{"aquilaTree":1,"labels":1,"root":[0]}"#);
    assert_eq!(LabelTree::from_json(&one.to_json()).unwrap(), one);
    assert_eq!(one.to_chain().unwrap(), [ones(1, 1, &[(0, 0)])]);
    assert_eq!(one.clone().collapse(3), one);
    // A single leaf under the root, and one matrix alone: labels under the root.
    let leaf = LabelTree::from_chain(&[ones(1, 1, &[(0, 0)]), ones(2, 1, &[(0, 0), (1, 0)])]).unwrap();
    assert_eq!(leaf.to_json(), r#"{"aquilaTree":1,"labels":2,"root":[[0,1]]}"#);
    assert_eq!(LabelTree::from_chain(&[ones(2, 1, &[(0, 0), (1, 0)])]).unwrap(), LabelTree::flat(2).unwrap());
}

/// A tree whose node has a label and a node, and so on down.
fn comb(depth: u32) -> LabelTree {
    let layers = (0..depth).map(|t| TreeLayer {
        starts: vec![0, if t + 1 < depth { 2 } else { 1 }],
        labels: if t + 1 < depth { vec![t, NODE] } else { vec![t] },
    });
    LabelTree::new(depth as usize, layers.collect()).unwrap()
}

#[test]
fn depth_is_no_danger() {
    for (depth, key) in [(100, "root"), (101, "layers"), (20_000, "layers")] {
        let tree = comb(depth);
        let text = tree.to_json();
        assert!(text.contains(&format!("\"{key}\":")), "depth {depth}");
        assert_eq!(LabelTree::from_json(&text).unwrap(), tree);
    }
    // Deep nesting by strangers is an error, not the end of the stack.
    let brackets = "[".repeat(1_000_000);
    for text in [brackets.clone(), format!(r#"{{"aquilaTree":1,"labels":1,"root":{brackets}"#)] {
        refused(LabelTree::from_json(&text), ErrorCode::Parse, &["recursion limit", "column"]);
    }
    // 40 000 · 39 999 / 2 padding nodes.
    refused(comb(40_000).to_chain(), ErrorCode::Unsupported, &["40000 layers", "799980000 padding nodes"]);
    assert_eq!(comb(1000).to_chain().unwrap().len(), 1000);
    assert_eq!(comb(300).collapse(400), LabelTree::flat(300).unwrap());
}

#[test]
fn bad_json_is_named() {
    use ErrorCode::*;
    let read = |labels: &str, rest: &str| {
        LabelTree::from_json(&format!(r#"{{ "aquilaTree": 1, "labels": {labels}, {rest} }}"#))
    };
    // The format.
    refused(LabelTree::from_json(""), Parse, &["JSON", "line 1"]);
    refused(LabelTree::from_json("{\n\"labels\": 3"), Parse, &["line 2"]);
    refused(LabelTree::from_json("[1]"), Parse, &["object", "a list of 1"]);
    refused(LabelTree::from_json("{}"), Parse, &["aquilaTree"]);
    refused(
        LabelTree::from_json(r#"{"aquilaTree": 2, "labels": 1, "root": [0]}"#),
        Parse,
        &["version 1", "received 2"],
    );
    refused(LabelTree::from_json(r#"{"aquilaTree": 1, "root": [0]}"#), Parse, &["labels"]);
    refused(read("-1", r#""root": [0]"#), Parse, &["labels", "-1"]);
    refused(read("1.5", r#""root": [0]"#), Parse, &["labels", "1.5"]);
    refused(read("1", r#""root": [0], "extra": 1"#), Parse, &["\"extra\"", "known are"]);
    refused(read("1", r#""root": [0], "layers": [[[0]]]"#), Parse, &["exactly one"]);
    refused(read("1", r#""root": 0"#), Parse, &["root", "list", "0"]);
    refused(read("1", r#""root": [[0], "a"]"#), Parse, &["layer 0, node 0, child 1", "\"a\""]);
    refused(read("1", r#""root": [[null], 0]"#), Parse, &["layer 1, node 0, child 0", "null"]);
    refused(read("2", r#""root": [[0], [1, -1]]"#), Parse, &["layer 1, node 1, child 1", "-1"]);
    refused(read("1", r#""root": [0.5]"#), Parse, &["0.5"]);
    refused(read("1", r#""layers": [[0]]"#), Parse, &["layer 0, node 0", "list"]);
    refused(read("1", r#""layers": [0]"#), Parse, &["layer 0", "list"]);
    refused(read("1", r#""layers": [[[[0]]]]"#), Parse, &["layer 0, node 0, child 0", "a list of 1"]);
    let long = "x".repeat(1000);
    let message = read("1", &format!(r#""root": ["{long}"]"#)).unwrap_err().message().len();
    assert!(message < 200, "a message of {message} bytes");

    // The tree.
    refused(read("3", r#""root": [[0, 1], [0]]"#), BadTree, &["label 2", "no slot"]);
    refused(
        read("3", r#""root": [[2, 0, 1, 0], [0]]"#),
        BadTree,
        &["layer 1", "label 0", "twice under node 0"],
    );
    refused(
        read("2", r#""root": [[0, 1], [2]]"#),
        BadTree,
        &["layer 1, node 1, child 0", "label 2", "labels, 2"],
    );
    refused(read("2", r#""root": [0, 1, 4294967295]"#), BadTree, &["4294967295"]);
    refused(read("2", r#""root": [0, 1, 18446744073709551615]"#), BadTree, &["18446744073709551615"]);
    refused(read("2", r#""root": [0, [], 1]"#), BadTree, &["layer 1", "node 0", "no children"]);
    refused(read("0", r#""root": []"#), BadTree, &["at least one"]);
    refused(read("1", r#""root": []"#), BadTree, &["layer 0", "no children"]);
    refused(read("2", r#""root": [0, 1, 0]"#), BadTree, &["label 0", "twice"]);
    refused(read("1", r#""layers": []"#), BadTree, &["at least one"]);
    refused(read("1", r#""layers": [[[0, null]]]"#), BadTree, &["last layer", "1 inner node"]);
    refused(
        read("2", r#""layers": [[[0, null]], [[1], [1]]]"#),
        BadTree,
        &["layer 1", "2 parents", "1 nodes"],
    );
    refused(read("1", r#""layers": [[[0]], []]"#), BadTree, &["layer 0", "layers follow"]);
    // A claim of billions of labels must not cost their memory.
    refused(read("4294967295", r#""root": [0, 1]"#), BadTree, &["label 2", "no slot"]);
    refused(read("4294967296", r#""root": [0, 1]"#), BadTree, &["4294967296", "limit"]);
}

#[test]
fn bad_chains_are_named() {
    use ErrorCode::BadTree;
    let read = |chain: &[Csr]| LabelTree::from_chain(chain);
    let top = || ones(2, 1, &[(0, 0), (1, 0)]);
    refused(read(&[]), BadTree, &["at least one matrix"]);
    let leaf = ones(3, 2, &[(0, 0), (1, 0), (2, 1)]);
    refused(read(std::slice::from_ref(&leaf)), BadTree, &["matrix 0", "3 x 2", "2 x 1 ones"]);
    refused(
        read(&[top(), ones(3, 3, &[(0, 0), (1, 1), (2, 2)])]),
        BadTree,
        &["matrix 1", "3 columns", "2 rows"],
    );
    refused(
        read(&[ones(2, 1, &[(0, 0)]), leaf.clone()]),
        BadTree,
        &["matrix 0", "row 1", "without a parent"],
    );
    let two = ones(2, 2, &[(0, 0), (0, 1), (1, 1)]);
    refused(read(&[top(), two, leaf]), BadTree, &["matrix 1", "row 0", "nodes 0 and 1"]);
    refused(
        read(&[top(), ones(2, 2, &[(0, 1), (1, 1)])]),
        BadTree,
        &["matrix 1", "column 0", "without children"],
    );
    refused(read(&[top(), ones(3, 2, &[(0, 0), (2, 1)])]), BadTree, &["label 1", "no slot"]);
    refused(read(&[ones(0, 1, &[])]), BadTree, &["column 0"]);
    // Stored zeros are no entries.
    let zero = Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![1.0, 0.0, 1.0]).unwrap();
    assert_eq!(
        read(&[top(), zero.clone(), zero]).unwrap().to_json(),
        r#"{"aquilaTree":1,"labels":2,"root":[[[0]],[[1]]]}"#
    );
}

#[test]
fn bad_layers_are_named() {
    use ErrorCode::BadTree;
    let layer =
        |starts: &[u32], labels: &[u32]| TreeLayer { starts: starts.to_vec(), labels: labels.to_vec() };
    refused(LabelTree::new(1, vec![layer(&[], &[0])]), BadTree, &["layer 0 has 0 parents"]);
    refused(LabelTree::new(1, vec![layer(&[0, 2], &[0])]), BadTree, &["layer 0", "1 columns"]);
    // A pointer that jumps past the end and comes back.
    let jumps = vec![layer(&[0, 2], &[NODE, NODE]), layer(&[0, 100, 2], &[0, 1])];
    refused(LabelTree::new(2, jumps), BadTree, &["layer 1", "node 1", "no children"]);
    refused(LabelTree::flat(0), BadTree, &["at least one"]);
    refused(LabelTree::flat(1 << 33), BadTree, &["8589934592", "limit"]);
}
