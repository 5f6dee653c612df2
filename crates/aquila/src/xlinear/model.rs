//! The model: what training makes, files hold and queries ask.

use super::file::{self, Bytes, Kind, Sections, Writer};
use super::layer_tables::{Directory, LayerTables, U32s};
use super::layout::{HEAD, LayerShape, Panels, Shape, first_chunks, lay_out};
use super::names::{Named, write_starts};
use super::{Block, DenseCodes, Merge, TrainParams, WeightFormat, WeightKind};
use crate::control::Control;
use crate::error::{Error, ErrorCode, Result, fail};
use crate::kernels::postings::{ByteCodes, CodeKind, PAD};
use crate::params::{Params, Value};
use crate::tree::{LabelTree, NODE, TreeLayer};
use serde_json::{Value as Json, json};
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

/// A trained model, in memory or mapped from its file.
///
/// It cannot change; share it by reference or in an `Arc`. The bytes in memory are those of the file.
#[derive(Debug)]
pub struct Model {
    bytes: Bytes,
    sections: Sections,
    pub(super) shape: Shape,
    pub(super) tables: Vec<LayerTables>,
    area: Range<usize>,
    directory: Range<usize>,
    wide_directory: bool,
    pub(super) codes: CodeKind,
    pub(super) features: usize,
    /// The dense ones of them, which are the last.
    pub(super) dense: DenseCodes,
    pub(super) labels: usize,
    slots: usize,
    weights: u64,
    parts: ModelParts,
    pub(super) slots_of: OnceLock<super::search::SlotsOf>,
}

/// What goes into a model beside its weights.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelParts {
    /// Number of feature columns.
    pub features: usize,
    /// How many of them, the last ones, are those of a dense block.
    pub dense: usize,
    /// The parameters of its training, all of them.
    pub params: TrainParams,
    /// The seed of its training.
    pub seed: u64,
    /// One name a label, or none at all.
    pub label_names: Vec<String>,
    /// One name a feature, or none at all.
    pub feature_names: Vec<String>,
    /// Whatever the user wants to keep with the model: a JSON text.
    pub metadata: String,
}

/// What a user may know of a model.
#[derive(Debug, Clone, Default)]
pub struct ModelInfo {
    /// Number of feature columns.
    pub features: usize,
    /// How many of them, the last ones, are those of a dense block.
    pub dense: usize,
    /// Number of labels.
    pub labels: usize,
    /// Number of slots: leaves' columns, at least one a label.
    pub slots: usize,
    /// Number of labels under more than one leaf.
    pub several: usize,
    /// Number of labels with a slot under the root beside their leaves.
    pub at_root: usize,
    /// Columns of each layer, root layer first.
    pub layers: Vec<usize>,
    /// Number of stored weights.
    pub weights: u64,
    /// Bytes of the model file.
    pub bytes: u64,
    /// Whether the bytes are mapped from a file rather than held in memory.
    pub mapped: bool,
    /// The file format's version.
    pub version: u32,
    /// The parameters of its training, all of them.
    pub params: TrainParams,
    /// The seed of its training.
    pub seed: u64,
    /// What the user wanted to keep with the model: a JSON text.
    pub metadata: String,
}

impl Model {
    /// Lays out trained blocks (any order) over a tree.
    ///
    /// Columns that no block holds were never trained: see [`Block::bias`]. The bytes are the same for any number of
    /// threads.
    pub fn assemble(
        parts: ModelParts,
        tree: &LabelTree,
        format: WeightFormat,
        blocks: Vec<Block>,
        control: &Control,
    ) -> Result<Self> {
        if parts.dense > parts.features {
            fail!(InvalidArgument, "{} dense features are more than all {}", parts.dense, parts.features);
        }
        if parts.features > u32::MAX as usize {
            fail!(InvalidArgument, "{} features pass the limit of {}", parts.features, u32::MAX);
        }
        Named::Labels.check(&parts.label_names, tree.labels())?;
        Named::Features.check(&parts.feature_names, parts.features)?;
        let image = control.install(|| image(&parts, tree, format, blocks, control))??;
        Self::from_bytes(image)
    }

    /// Maps a model file. The structure is checked, the weights' checksums are not: see [`Model::verify`].
    ///
    /// Takes milliseconds whatever the size. A damaged file that opens may give wrong scores, nothing worse. The
    /// file must not be cut or written into while it is open: the system ends a process that reads where a mapped file has
    /// been cut (`SIGBUS`). Replacing it by renaming is fine, and [`Model::read`] does not depend on it.
    pub fn open(path: &Path) -> Result<Self> {
        Self::from_image(file::map(path)?).map_err(file::named(path))
    }

    /// Reads a model file into memory, which takes its time and its size; the file may change or go away afterwards.
    pub fn read(path: &Path, control: &Control) -> Result<Self> {
        Self::from_image(file::read(path, control)?).map_err(file::named(path))
    }

    /// Takes the bytes of a model file.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        Self::from_image(Bytes::Held(bytes))
    }

    /// The bytes of the model file.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Writes the model to a file, whole or not at all.
    pub fn save(&self, path: &Path, control: &Control) -> Result<()> {
        crate::data::write_atomically(path, control, |w| w.write_all(&self.bytes))
    }

    /// Compares every byte with the file's checksums.
    pub fn verify(&self, control: &Control) -> Result<()> {
        file::verify(&self.bytes, &self.sections, control)
    }

    /// What a user may know of it. Names are copied: see [`Model::label_name`] and [`Model::feature_name`] for single ones.
    pub fn info(&self) -> ModelInfo {
        let ModelParts { params, seed, metadata, .. } = &self.parts;
        ModelInfo {
            features: self.features,
            dense: self.dense.cols(),
            labels: self.labels,
            slots: self.slots,
            several: if self.one_slot() { 0 } else { self.slots_of().several().count() },
            at_root: if self.one_slot() { 0 } else { self.slots_of().beside_root() },
            layers: self.shape.layers.iter().map(|l| l.columns).collect(),
            weights: self.weights,
            bytes: self.bytes.len() as u64,
            mapped: matches!(self.bytes, Bytes::Mapped(_)),
            version: file::VERSION,
            params: params.clone(),
            seed: *seed,
            metadata: metadata.clone(),
        }
    }

    /// The tree, rebuilt from the model's tables.
    pub fn tree(&self) -> Result<LabelTree> {
        let mut layers = Vec::with_capacity(self.tables.len());
        for (t, shape) in self.shape.layers.iter().enumerate() {
            let starts = self.starts(t).iter().collect();
            let labels = match &self.tables[t].labels {
                Some(_) => self.slot_labels(t).iter().collect(),
                None => vec![NODE; shape.columns],
            };
            layers.push(TreeLayer { starts, labels });
        }
        LabelTree::new(self.labels, layers).map_err(|e| Error::new(ErrorCode::BadModel, e.message()))
    }

    /// Number of feature columns.
    pub fn features(&self) -> usize {
        self.features
    }

    /// Number of those of a dense block, which are the last.
    pub fn dense(&self) -> usize {
        self.dense.cols()
    }

    /// Number of sparse features, which come first.
    pub(super) fn sparse(&self) -> usize {
        self.features - self.dense.cols()
    }

    /// Number of labels.
    pub fn labels(&self) -> usize {
        self.labels
    }

    /// Whether every label has one slot, so that nothing is merged.
    pub(super) fn one_slot(&self) -> bool {
        self.slots == self.labels
    }

    /// How the scores of a label's slots become its own.
    pub(super) fn merge(&self) -> Merge {
        self.parts.params.overlap.merge
    }

    /// Whether rows are scaled to length 1.
    pub(super) fn normalize(&self) -> bool {
        self.parts.params.model.normalize
    }

    /// The bytes of a section that belongs to no layer, where there is one.
    pub(super) fn section(&self, kind: Kind) -> Option<&[u8]> {
        self.sections.find(kind, 0).map(|span| &self.bytes[span])
    }

    pub(super) fn area(&self) -> &[u8] {
        &self.bytes[self.area.clone()]
    }

    /// Where buckets stand in the area.
    pub(super) fn directory(&self) -> Directory<'_> {
        Directory { words: &self.bytes[self.directory.clone()], wide: self.wide_directory }
    }

    pub(super) fn starts(&self, layer: usize) -> U32s<'_> {
        U32s::new(&self.bytes[self.tables[layer].starts.clone()])
    }

    pub(super) fn slot_labels(&self, layer: usize) -> U32s<'_> {
        self.tables[layer].labels.clone().map_or(U32s::new(&[]), |s| U32s::new(&self.bytes[s]))
    }

    pub(super) fn nodes(&self, layer: usize) -> Option<U32s<'_>> {
        self.tables[layer].nodes.clone().map(|s| U32s::new(&self.bytes[s]))
    }

    pub(super) fn chunks(&self, layer: usize) -> Option<U32s<'_>> {
        self.tables[layer].chunks.clone().map(|s| U32s::new(&self.bytes[s]))
    }

    /// The codes of the dense weights from a column on, and the columns' scales.
    pub(super) fn panel(&self, layer: usize, column: usize) -> (&[u8], &[[u8; 4]]) {
        let table = &self.tables[layer];
        let codes = &self.bytes[table.panel.clone()];
        let scales = self.bytes[table.scales.clone()].as_chunks().0;
        let begin = column.saturating_mul(self.dense.stride());
        (codes.get(begin..).unwrap_or(&[]), scales.get(column..).unwrap_or(&[]))
    }

    pub(super) fn bias(&self, layer: usize) -> &[[u8; 4]] {
        self.bytes[self.tables[layer].bias.clone()].as_chunks().0
    }

    fn from_image(bytes: Bytes) -> Result<Self> {
        let sections = file::read_sections(&bytes)?;
        let description: Json = serde_json::from_slice(&bytes[sections.need(Kind::Description, 0)?])
            .map_err(|e| broken(format!("its description is no JSON: {e}")))?;
        let number = |of: &Json, name: &str| {
            of.get(name).and_then(Json::as_u64).ok_or_else(|| broken(format!("its description lacks {name}")))
        };
        let size = |of: &Json, name: &str| {
            let beyond = |_| broken(format!("its {name} passes what this machine can address"));
            number(of, name).and_then(|v| usize::try_from(v).map_err(beyond))
        };

        let mut layers = Vec::new();
        for l in description.get("layers").and_then(Json::as_array).map_or(&[][..], Vec::as_slice) {
            layers.push(LayerShape {
                parents: size(l, "parents")?,
                columns: size(l, "columns")?,
                chunks: size(l, "chunks")?,
                words: size(l, "words")?,
                nodes: size(l, "nodes")?,
                head: None,
            });
        }
        // Memory is taken by these numbers. Those of parents and columns are as large as tables of the file, by
        // `LayerTables`; the others are bounded by them: a chunk has a column at least.
        let fits = |l: &LayerShape| {
            let limit = u32::MAX as usize;
            l.parents.max(l.columns) < limit
                && l.columns > 0
                && (1..=8).contains(&l.words)
                && (l.columns.div_ceil(l.stride())..=l.columns).contains(&l.chunks)
                && l.nodes <= l.columns
        };
        let parents = std::iter::once(1).chain(layers.iter().map(|l| l.nodes));
        let hang = layers.iter().zip(parents).all(|(l, nodes)| l.parents == nodes);
        if layers.is_empty() || layers.len() > MOST_LAYERS || !hang || !layers.iter().all(fits) {
            return Err(broken("its layers are impossible".into()));
        }
        if !layers.iter().all(|l| l.addressable(isize::MAX as usize)) {
            fail!(
                Unsupported,
                "the model's layers are larger than this machine can address: use one of 64 bits"
            );
        }
        let head_columns = Shape::place_head(&mut layers);
        let shape = Shape { layers, head_columns };

        let area = sections.need(Kind::Weights, 0)?;
        if area.len() < PAD {
            return Err(broken("its weight area is too short".into()));
        }
        let directory = sections.need(Kind::Directory, 0)?;
        let features = size(&description, "features")?;
        let wide_directory = size(&description, "directoryBytes")? == 8;
        let dense = description.get("dense").map_or(Ok(0), |_| size(&description, "dense"))?;
        let Some(sparse) = features.checked_sub(dense) else {
            return Err(broken(format!("{dense} of its {features} features are dense")));
        };
        let buckets = sparse.div_ceil(super::layout::BUCKET);
        if features > u32::MAX as usize || directory.len() != buckets * if wide_directory { 8 } else { 4 } {
            return Err(broken("its directory does not fit its features".into()));
        }
        let format = &description["format"];
        let kinds = [WeightKind::Byte, WeightKind::Bf16, WeightKind::F32];
        let name = format.get("weights").and_then(Json::as_str);
        let kind = kinds.into_iter().find(|kind| Some(kind.as_str()) == name);
        let Some(kind) = kind else { return Err(broken("its weight format is unknown".into())) };
        let codes = match kind {
            WeightKind::Byte => {
                let (mantissa, base) = (number(format, "mantissa")?, number(format, "base")?);
                let codes = u32::try_from(mantissa).ok().zip(u32::try_from(base).ok());
                let codes = codes.and_then(|(mantissa, base)| ByteCodes::new(mantissa, base));
                CodeKind::Byte(codes.ok_or_else(|| broken("its weight format is impossible".into()))?)
            }
            WeightKind::Bf16 => CodeKind::Bf16,
            WeightKind::F32 => CodeKind::F32,
        };
        let dense = DenseCodes::new(kind, dense);
        let tables = LayerTables::find(&shape, dense, &sections)?;
        let mut params = TrainParams::default();
        // What files that do not say were made for.
        params.overlap.merge = Merge::Average;
        for (name, value) in description.get("params").and_then(Json::as_object).into_iter().flatten() {
            let value = match value {
                Json::Bool(b) => Value::Bool(*b),
                Json::String(s) => Value::Text(s.clone()),
                other => Value::Number(other.as_f64().unwrap_or(f64::NAN)),
            };
            // A later build may have parameters that this one lacks: they tell how it was trained, no more.
            params.try_set(name, &value).map_err(|e| broken(e.message().to_owned()))?;
        }
        let text = |span: Option<Range<usize>>| match span {
            None => Ok(String::new()),
            Some(span) => {
                String::from_utf8(bytes[span].to_vec()).map_err(|_| broken("its metadata is no UTF-8".into()))
            }
        };
        let metadata = text(sections.find(Kind::Metadata, 0))?;
        let (labels, slots) = (size(&description, "labels")?, size(&description, "slots")?);
        let all_slots: usize = shape.layers.iter().map(|l| l.columns - l.nodes).sum();
        if labels == 0 || labels >= u32::MAX as usize || slots != all_slots || slots < labels {
            return Err(broken(format!("{labels} labels do not fit {slots} slots")));
        }
        for (of, count) in [(Named::Labels, labels), (Named::Features, features)] {
            let starts = sections.find(of.kinds().0, 0).map(|span| span.len());
            if starts.is_some_and(|bytes| Some(bytes) != (count + 1).checked_mul(8)) {
                return Err(broken(format!("its names do not fit its {count} {}", of.plural())));
            }
        }
        let seed = number(&description, "seed")?;
        // Names stay where they are: there may be millions.
        let parts =
            ModelParts { features, dense: dense.cols(), params, seed, metadata, ..ModelParts::default() };
        let weights = number(&description, "weightCount")?;
        Ok(Self {
            shape,
            tables,
            area,
            directory,
            wide_directory,
            codes,
            features,
            dense,
            labels,
            slots,
            weights,
            parts,
            slots_of: OnceLock::new(),
            sections,
            bytes,
        })
    }
}

/// More layers than a file can have: 255 below the head, which has no more than columns.
const MOST_LAYERS: usize = 255 + HEAD;

fn broken(what: String) -> Error {
    Error::new(ErrorCode::BadModel, format!("the model is broken: {what}"))
}

/// All sections of a model.
fn image(
    parts: &ModelParts,
    tree: &LabelTree,
    format: WeightFormat,
    mut blocks: Vec<Block>,
    control: &Control,
) -> Result<Vec<u8>> {
    let shape = Shape::of(tree);
    let dense = DenseCodes::new(format.kind(), parts.dense);
    let panels = Panels::take(&shape, tree, dense, &mut blocks)?;
    let whole = 6 + 2 * usize::from(!parts.feature_names.is_empty());
    let mut writer = Writer::new(whole + (if parts.dense > 0 { 7 } else { 5 }) * shape.layers.len());
    let laid = writer.section(Kind::Weights, 0, |image| {
        lay_out(&shape, tree, parts.features - parts.dense, format.bytes(), blocks, control, image)
    })?;
    let wide = laid.directory.last().is_some_and(|p| *p > u64::from(u32::MAX));
    let mut put = |kind, layer, bytes: &mut dyn FnMut(&mut Vec<u8>)| {
        writer.section(kind, layer, |image| {
            bytes(image);
            Ok(())
        })
    };
    put(Kind::Directory, 0, &mut |image| {
        for p in &laid.directory {
            image.extend_from_slice(&p.to_le_bytes()[..if wide { 8 } else { 4 }]);
        }
    })?;
    let numbers = |values: &[u32]| {
        let values = values.to_vec();
        move |image: &mut Vec<u8>| values.iter().for_each(|v| image.extend_from_slice(&v.to_le_bytes()))
    };
    let first_chunks = first_chunks(&shape, tree);
    for (t, (layer, numbers_of)) in tree.layers().iter().zip(&shape.layers).enumerate() {
        put(Kind::Starts, t, &mut numbers(&layer.starts))?;
        if numbers_of.chunks != numbers_of.parents {
            put(Kind::Chunks, t, &mut numbers(&first_chunks[t]))?;
        }
        let bias: Vec<u32> = laid.bias[t].iter().map(|b| b.to_bits()).collect();
        put(Kind::Bias, t, &mut numbers(&bias))?;
        if dense.cols() > 0 {
            put(Kind::Panel, t, &mut |image| panels.write(t, numbers_of.columns, image))?;
            if dense.scaled() {
                let scales: Vec<u32> =
                    panels.scales(t, numbers_of.columns).iter().map(|s| s.to_bits()).collect();
                put(Kind::Scales, t, &mut numbers(&scales))?;
            }
        }
        if numbers_of.nodes < numbers_of.columns {
            put(Kind::Labels, t, &mut numbers(&layer.labels))?;
        }
        if numbers_of.mixed() {
            let mut before = 0;
            let count = |l: &u32| {
                before += u32::from(*l == NODE);
                before - u32::from(*l == NODE)
            };
            let nodes: Vec<u32> = layer.labels.iter().map(count).collect();
            put(Kind::Nodes, t, &mut numbers(&nodes))?;
        }
    }
    for (of, names) in [(Named::Labels, &parts.label_names), (Named::Features, &parts.feature_names)] {
        if !names.is_empty() {
            let (starts, all) = of.kinds();
            put(starts, 0, &mut |image| write_starts(names, image))?;
            put(all, 0, &mut |image| names.iter().for_each(|n| image.extend_from_slice(n.as_bytes())))?;
        }
    }
    if !parts.metadata.is_empty() {
        put(Kind::Metadata, 0, &mut |image| image.extend_from_slice(parts.metadata.as_bytes()))?;
    }
    let format = match format {
        WeightFormat::Byte { mantissa, base } => {
            json!({ "weights": "u8", "mantissa": mantissa, "base": base })
        }
        other => json!({ "weights": other.kind().as_str() }),
    };
    let params: serde_json::Map<String, Json> = parts
        .params
        .values()
        .into_iter()
        .map(|(name, value)| {
            let value = match value {
                Value::Number(v) => json!(v),
                Value::Bool(v) => json!(v),
                Value::Text(v) => json!(v),
            };
            (name.to_owned(), value)
        })
        .collect();
    let layer = |l: &LayerShape| json!({ "parents": l.parents, "columns": l.columns, "chunks": l.chunks, "words": l.words, "nodes": l.nodes });
    let mut description = json!({
        "engine": crate::VERSION,
        "features": parts.features,
        "labels": tree.labels(),
        "slots": tree.slots(),
        "layers": shape.layers.iter().map(layer).collect::<Vec<_>>(),
        "weightCount": laid.weights + panels.weights(),
        "format": format,
        "directoryBytes": if wide { 8 } else { 4 },
        "seed": parts.seed,
        "params": params,
    });
    if parts.dense > 0 {
        description["dense"] = json!(parts.dense);
    }
    put(Kind::Description, 0, &mut |image| image.extend_from_slice(description.to_string().as_bytes()))?;
    Ok(writer.finish())
}
