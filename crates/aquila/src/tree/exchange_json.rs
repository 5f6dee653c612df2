//! A tree as JSON text.
//!
//! ```json
//! { "aquilaTree": 1, "labels": 5, "root": [[0, 1], 4, [2, [3, 0]]] }
//! ```
//!
//! - `aquilaTree`: the format's version, 1.
//! - `labels`: the number of labels. Each label from 0 to `labels − 1` occurs at least once.
//! - `root`: a node is the list of its children, each of which is a node or a label. Here label 4 is placed under the
//!   root itself, and label 0 under two leaves.
//!
//! JSON readers, including ours, refuse deep nesting, so trees of more than 100 layers have `layers` in place of
//! `root`:
//!
//! ```json
//! { "aquilaTree": 1, "labels": 5, "layers": [[[null, 4, null]], [[0, 1], [2, null]], [[3, 0]]] }
//! ```
//!
//! A layer is a list of parents, and a parent is the list of its children: a label, or null for an inner node. The n-th
//! null of a layer is the n-th parent of the next. Both forms hold the same information, cannot express a cycle, and
//! can be read at any depth. Cost O(columns) in both directions.

use super::{LabelTree, NODE, TreeLayer};
use crate::error::{Error, ErrorCode, Result, fail};
use serde_json::Value;
use std::fmt::Write;

const VERSION: u64 = 1;

/// Maximum depth of a tree written nested. JSON readers commonly stop at 128 levels, and the text itself uses two.
const MAX_NESTED: usize = 100;

impl LabelTree {
    /// The tree as JSON: `{"aquilaTree": 1, "labels": 5, "root": [[0, 1], 4, [2, [3, 0]]]}`.
    ///
    /// A node is the list of its children, each a node or a label. Because readers refuse deep nesting, trees of more
    /// than 100 layers have `layers` in place of `root`: a list of layers, each a list of parents, each the list of its
    /// children, which are labels or null for inner nodes. The n-th null is the n-th parent of the next layer.
    pub fn to_json(&self) -> String {
        let mut out = format!("{{\"aquilaTree\":{VERSION},\"labels\":{},", self.labels());
        if self.layers().len() <= MAX_NESTED {
            out.push_str("\"root\":");
            self.write_nested(&mut out);
        } else {
            out.push_str("\"layers\":");
            self.write_layers(&mut out);
        }
        out.push('}');
        out
    }

    /// Depth first. The nodes of each layer are visited in order, so one counter per layer numbers them.
    fn write_nested(&self, out: &mut String) {
        let layers = self.layers();
        let mut numbers = vec![0; layers.len()];
        let mut open = vec![layers[0].children(0)];
        out.push('[');
        while let Some(columns) = open.last_mut() {
            let Some(column) = columns.next() else {
                out.push(']');
                open.pop();
                continue;
            };
            let t = open.len() - 1;
            if !out.ends_with('[') {
                out.push(',');
            }
            match layers[t].labels[column] {
                NODE => {
                    out.push('[');
                    open.push(layers[t + 1].children(numbers[t + 1]));
                    numbers[t + 1] += 1;
                }
                label => push_number(out, label),
            }
        }
    }

    fn write_layers(&self, out: &mut String) {
        out.push('[');
        for (t, layer) in self.layers().iter().enumerate() {
            out.push_str(if t == 0 { "[" } else { ",[" });
            for p in 0..layer.parents() {
                out.push_str(if p == 0 { "[" } else { ",[" });
                for column in layer.children(p) {
                    if !out.ends_with('[') {
                        out.push(',');
                    }
                    match layer.labels[column] {
                        NODE => out.push_str("null"),
                        label => push_number(out, label),
                    }
                }
                out.push(']');
            }
            out.push(']');
        }
        out.push(']');
    }

    /// Reads the output of [`LabelTree::to_json`] in either form. Text that violates the format is a `PARSE` error; a
    /// tree that does not hold every label below a leaf is a `BAD_TREE` error.
    ///
    /// ```
    /// use aquila::tree::LabelTree;
    /// let tree = LabelTree::from_json(r#"{ "aquilaTree": 1, "labels": 3, "root": [[0, 1], [1, 2]] }"#)?;
    /// assert_eq!((tree.labels(), tree.slots()), (3, 4));
    /// # Ok::<(), aquila::Error>(())
    /// ```
    pub fn from_json(text: &str) -> Result<Self> {
        // serde_json bounds its depth, so neither reading nor dropping the value can exhaust the stack.
        let value: Value = serde_json::from_str(text)
            .map_err(|e| Error::new(ErrorCode::Parse, format!("the tree is no readable JSON: {e}")))?;
        let Value::Object(fields) = &value else {
            fail!(Parse, "Expected an object for the tree but received {}", show(&value));
        };
        if let Some(key) =
            fields.keys().find(|k| !["aquilaTree", "labels", "root", "layers"].contains(&k.as_str()))
        {
            fail!(Parse, "the tree has an unknown key {key:?}: known are aquilaTree, labels, root, layers");
        }
        match fields.get("aquilaTree") {
            Some(v) if v.as_u64() == Some(VERSION) => {}
            Some(v) => fail!(Parse, "Expected version {VERSION} for aquilaTree but received {}", show(v)),
            None => fail!(Parse, "the tree has no key aquilaTree: write \"aquilaTree\": {VERSION} into it"),
        }
        let labels = match fields.get("labels") {
            Some(v) => v.as_u64().and_then(|n| usize::try_from(n).ok()).ok_or_else(|| {
                Error::new(
                    ErrorCode::Parse,
                    format!("Expected a number of labels for labels but received {}", show(v)),
                )
            })?,
            None => fail!(Parse, "the tree has no key labels: the number of labels"),
        };
        let layers = match (fields.get("root"), fields.get("layers")) {
            (Some(root), None) => read_nested(list(root, format_args!("root"))?, labels)?,
            (None, Some(layers)) => read_layers(list(layers, format_args!("layers"))?, labels)?,
            _ => fail!(Parse, "the tree needs exactly one of the keys root and layers"),
        };
        Self::new(labels, layers)
    }
}

fn push_number(out: &mut String, number: u32) {
    // Writing to a String cannot fail.
    let _ = write!(out, "{number}");
}

/// Breadth first: a layer's nodes are collected while the layer above is read.
fn read_nested(root: &[Value], labels: usize) -> Result<Vec<TreeLayer>> {
    let mut layers = Vec::new();
    let mut nodes = vec![root];
    while !nodes.is_empty() {
        let mut inner = Vec::new();
        layers.push(read_layer(layers.len(), &nodes, labels, |child| match child {
            Value::Array(children) => {
                inner.push(children.as_slice());
                true
            }
            _ => false,
        })?);
        nodes = inner;
    }
    Ok(layers)
}

fn read_layers(layers: &[Value], labels: usize) -> Result<Vec<TreeLayer>> {
    let mut read = Vec::with_capacity(layers.len());
    for (t, layer) in layers.iter().enumerate() {
        let parents = list(layer, format_args!("layer {t}"))?;
        let nodes = parents
            .iter()
            .enumerate()
            .map(|(p, node)| list(node, format_args!("layer {t}, node {p}")))
            .collect::<Result<Vec<_>>>()?;
        read.push(read_layer(t, &nodes, labels, |child| child.is_null())?);
    }
    Ok(read)
}

/// Builds one layer from the children of each of its parents; `is_node` distinguishes inner nodes from labels.
fn read_layer<'a>(
    t: usize,
    nodes: &[&'a [Value]],
    labels: usize,
    mut is_node: impl FnMut(&'a Value) -> bool,
) -> Result<TreeLayer> {
    let mut layer = TreeLayer { starts: vec![0], labels: Vec::new() };
    for (p, node) in nodes.iter().enumerate() {
        for (c, child) in node.iter().enumerate() {
            if is_node(child) {
                layer.labels.push(NODE);
                continue;
            }
            let Some(label) = child.as_u64() else {
                fail!(
                    Parse,
                    "layer {t}, node {p}, child {c}: Expected a label or an inner node but received {}",
                    show(child)
                );
            };
            match u32::try_from(label) {
                Ok(id) if label < labels as u64 => layer.labels.push(id),
                _ => fail!(
                    BadTree,
                    "layer {t}, node {p}, child {c}: label {label} is not below the number of labels, {labels}"
                ),
            }
        }
        let Ok(end) = u32::try_from(layer.labels.len()) else {
            fail!(BadTree, "layer {t} has more than {} columns", u32::MAX);
        };
        layer.starts.push(end);
    }
    Ok(layer)
}

fn list<'a>(value: &'a Value, place: std::fmt::Arguments<'_>) -> Result<&'a [Value]> {
    match value {
        Value::Array(items) => Ok(items),
        other => fail!(Parse, "{place}: Expected a list but received {}", show(other)),
    }
}

/// A foreign value for an error message, truncated to one short line.
fn show(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(fields) => format!("an object of {} keys", fields.len()),
        Value::String(text) if text.chars().count() > 40 => {
            format!("{:?}…", text.chars().take(40).collect::<String>())
        }
        other => other.to_string(),
    }
}
