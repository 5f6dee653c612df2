//! What labels mean in each of their leaves, against a naive reading of the decoded weights.

use crate::search_support::*;
use aquila::control::Control;
use aquila::tree::NODE;
use aquila::xlinear::{Meanings, Telling};
use aquila::{Error, ErrorCode};
use std::collections::HashMap;

/// The columns on the way from the root to the parent of a column.
fn way(made: &Made, mut t: usize, mut column: usize) -> Vec<(usize, usize)> {
    let mut way = Vec::new();
    while t > 0 {
        let parent = made.tree.layers()[t].starts.iter().filter(|s| **s as usize <= column).count() - 1;
        t -= 1;
        let nodes = made.tree.layers()[t].labels.iter().enumerate().filter(|(_, l)| **l == NODE);
        column = nodes.map(|(c, _)| c).nth(parent).unwrap();
        way.push((t, column));
    }
    way
}

/// The slots of a label that are leaves: not one under the root beside others.
fn leaves_of(made: &Made, label: u32) -> Vec<(usize, usize)> {
    let mut slots = Vec::new();
    for (t, layer) in made.tree.layers().iter().enumerate() {
        slots.extend((0..layer.columns()).filter(|c| layer.labels[*c] == label).map(|c| (t, c)));
    }
    if slots.iter().any(|s| s.0 > 0) {
        slots.retain(|s| s.0 > 0);
    }
    slots
}

/// The sum of the weights on the way to a slot, where it is not the way to all slots.
fn way_to(made: &Made, slots: &[(usize, usize)], i: usize) -> HashMap<u32, f32> {
    let ways: Vec<_> = slots.iter().map(|(t, c)| way(made, *t, *c)).collect();
    let mut sum = HashMap::new();
    for (t, c) in ways[i].iter().filter(|c| !ways.iter().all(|w| w.contains(c))) {
        made.columns[*t][*c].1.iter().for_each(|(f, w)| *sum.entry(*f).or_insert(0.0) += w);
    }
    sum
}

/// All features that lead, with weight and lead, of one leaf.
fn naive(all: &[&HashMap<u32, f32>], leaf: usize) -> HashMap<u32, (f32, f32)> {
    let at = |l: usize, f: u32| all[l].get(&f).copied().unwrap_or(0.0);
    let mut out = HashMap::new();
    for (&f, &weight) in all[leaf] {
        let others = (0..all.len()).filter(|l| *l != leaf).map(|l| at(l, f));
        let lead = weight - if all.len() == 1 { 0.0 } else { others.fold(f32::NEG_INFINITY, f32::max) };
        out.insert(f, (weight, lead));
    }
    out.retain(|_, (weight, lead)| *weight > 0.0 && *lead > 0.0);
    out
}

fn compare(got: &[Telling], want: &HashMap<u32, (f32, f32)>, place: &str) {
    assert!(got.is_sorted_by(|a, b| a.lead >= b.lead), "{place}: {got:?}");
    // What hardly leads may lead or not: sums are rounded.
    let got: HashMap<u32, (f32, f32)> = got.iter().map(|t| (t.feature, (t.weight, t.lead))).collect();
    for (a, b) in [(&got, want), (want, &got)] {
        for (f, (weight, lead)) in a.iter().filter(|(_, t)| t.0.min(t.1) > 1e-3) {
            let other = b.get(f).unwrap_or_else(|| panic!("{place}: feature {f}, {weight}, {lead}"));
            let near = (weight - other.0).abs() < 1e-3 && (lead - other.1).abs() < 1e-3;
            assert!(near, "{place}, feature {f}: {weight}, {lead} is not {other:?}");
        }
    }
}

#[test]
fn features_lead_as_in_a_naive_reading_of_the_weights() {
    let mut several = 0;
    // More chunks of a layer than one walk may ask for.
    let wide = Plan { density: 0.01, features: 30, ..Plan::new("many chunks", 530_000, &[]) };
    for plan in plans().into_iter().filter(|p| p.labels < 10_000).chain([wide]) {
        let made = make(&plan, 1);
        let control = Control::with_threads(2);
        let mut rng = Rng(plan.seed + 5);
        let mut labels: Vec<u32> = (0..12).map(|_| rng.below(plan.labels) as u32).collect();
        labels.extend(made.model.several_labels().into_iter().take(30));
        let found = made.model.meanings(&labels, usize::MAX, &control).unwrap();
        assert_eq!(found.len(), labels.len());
        for (label, Meanings { label: of, leaves }) in labels.iter().zip(&found) {
            assert_eq!(label, of);
            let slots = leaves_of(&made, *label);
            several += usize::from(slots.len() > 1);
            let own: Vec<_> = slots.iter().map(|(t, c)| &made.columns[*t][*c].1).collect();
            assert_eq!(leaves.len(), slots.len());
            for (i, (leaf, (t, column))) in leaves.iter().zip(&slots).enumerate() {
                let place = format!("{}, label {label}, leaf {i}", plan.name);
                let layer = &made.tree.layers()[*t];
                let children = layer.children(leaf.node as usize);
                assert!(leaf.layer as usize == *t && children.contains(column), "{place}");
                let others = layer.labels[children].iter().copied().filter(|l| l != label && *l != NODE);
                assert_eq!(leaf.neighbours, others.collect::<Vec<_>>(), "{place}");
                let way = way_to(&made, &slots, i);
                // Sums about 0 may be rounded to either side.
                let unclear = |f: &u32| way.get(f).is_some_and(|w| w.abs() < 1e-3);
                let mut want = naive(&own, i);
                want.retain(|f, _| !unclear(f) && way.get(f).is_none_or(|w| *w >= 0.0));
                let got: Vec<Telling> =
                    leaf.features.iter().filter(|t| !unclear(&t.feature)).copied().collect();
                compare(&got, &want, &place);
            }
        }
        let few = made.model.meanings(&labels, 3, &Control::with_threads(1)).unwrap();
        for (few, all) in few.iter().zip(&found).flat_map(|(f, a)| f.leaves.iter().zip(&a.leaves)) {
            assert_eq!(few.features, all.features[..all.features.len().min(3)]);
        }
        let none = made.model.meanings(&labels, 0, &control).unwrap();
        assert!(none.iter().flat_map(|m| &m.leaves).all(|l| l.features.is_empty()));
    }
    assert!(several > 100, "{several}");
}

#[test]
fn labels_of_several_leaves_are_all_and_only_those() {
    for plan in plans().into_iter().filter(|p| p.labels < 1000) {
        let made = make(&plan, 1);
        let labels = 0..plan.labels as u32;
        let want: Vec<u32> = labels.clone().filter(|l| leaves_of(&made, *l).len() > 1).collect();
        assert_eq!(made.model.several_labels(), want, "{}", plan.name);
        let info = made.model.info();
        assert_eq!(info.several, want.len());
        let root = &made.tree.layers()[0].labels;
        let beside = |l: &u32| root.contains(l) && leaves_of(&made, *l)[0].0 > 0;
        assert_eq!(info.at_root, labels.filter(beside).count(), "{}", plan.name);
    }
}

#[test]
fn a_label_that_is_none_and_a_cancelled_reading_are_refused() {
    let made = make(&plans().into_iter().find(|p| p.name == "several slots").unwrap(), 1);
    let code = |e: Error| e.code();
    let control = Control::with_threads(1);
    assert_eq!(made.model.meanings(&[3, 400], 1, &control).map_err(code), Err(ErrorCode::IndexOutOfRange));
    assert_eq!(made.model.meanings(&[], 1, &control), Ok(Vec::new()));
    control.cancel_flag().store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(made.model.meanings(&[3], 1, &control).map_err(code), Err(ErrorCode::Cancelled));
}
