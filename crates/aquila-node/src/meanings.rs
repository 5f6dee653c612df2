//! What labels mean in each of their leaves.

use crate::error::Result;
use crate::job::{self, Control};
use crate::xlinear::{ModelHandle, read_labels};
use aquila::xlinear::{self as engine, Model};
use napi::bindgen_prelude::{Object, Uint32Array};
use napi::{Env, Unknown};
use napi_derive::napi;
use std::vec::IntoIter;

/// A feature that tells a leaf of a label from its others.
#[napi(object, object_from_js = false)]
pub struct Telling {
    /// The feature.
    pub feature: u32,
    /// Its name, where the model has names.
    pub name: Option<String>,
    /// Its weight in this leaf.
    pub weight: f64,
    /// By how much that passes the largest weight that it has in another leaf of the label.
    pub lead: f64,
}

/// A leaf of a label.
#[napi(object, object_from_js = false)]
pub struct Leaf {
    /// The layer of its slots.
    pub layer: u32,
    /// Its number among the parents of the layer.
    pub node: u32,
    /// The other labels there.
    pub neighbours: Uint32Array,
    /// What tells the label from its neighbours here.
    pub features: Vec<Telling>,
}

/// A label and its leaves.
#[napi(object, object_from_js = false)]
pub struct Meanings {
    /// The label.
    pub label: u32,
    /// Its name, where the model has names.
    pub name: Option<String>,
    /// Its leaves.
    pub leaves: Vec<Leaf>,
}

fn meanings(model: &Model, found: engine::Meanings) -> Meanings {
    let telling = |t: engine::Telling| Telling {
        feature: t.feature,
        name: model.feature_name(t.feature).map(str::to_owned),
        weight: f64::from(t.weight),
        lead: f64::from(t.lead),
    };
    let leaf = |l: engine::Leaf| Leaf {
        layer: l.layer,
        node: l.node,
        neighbours: l.neighbours.into(),
        features: l.features.into_iter().map(telling).collect(),
    };
    Meanings {
        label: found.label,
        name: model.label_name(found.label).map(str::to_owned),
        leaves: found.leaves.into_iter().map(leaf).collect(),
    }
}

/// What was found, taken piece by piece: the objects of very many labels at once would hold the event loop.
#[napi]
pub struct FoundMeanings {
    found: IntoIter<Meanings>,
}

#[napi]
impl FoundMeanings {
    /// The next ones, at most so many; none at the end.
    #[napi(catch_unwind)]
    pub fn next(&mut self, count: u32) -> Vec<Meanings> {
        self.found.by_ref().take(count as usize).collect()
    }
}

#[napi]
impl ModelHandle {
    /// What these labels, or all of several leaves, mean in each of their leaves, told by up to `features` features.
    #[napi(catch_unwind, ts_return_type = "Promise<FoundMeanings>")]
    pub fn meanings<'env>(
        &self,
        env: &'env Env,
        #[napi(ts_arg_type = "Uint32Array | undefined")] labels: Option<Unknown<'_>>,
        features: u32,
        control: &mut Control,
    ) -> Result<Object<'env>> {
        let model = self.model()?;
        let labels = read_labels(labels, "labels")?;
        let work = move |control: &aquila::Control| {
            let labels = labels.unwrap_or_else(|| model.several_labels());
            let found = model.meanings(&labels, features as usize, control)?;
            Ok(found.into_iter().map(|m| meanings(&model, m)).collect::<Vec<_>>())
        };
        job::run(env, "meanings", control, work, |_, found| Ok(FoundMeanings { found: found.into_iter() }))
    }
}
