//! What comes out.

use super::Unlabelled;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A measure at each k, from 0 to 1.
pub type AtK = BTreeMap<u32, f64>;

/// The measures of an evaluation. The formulas stand on the [module's page](super).
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Rows that count.
    pub rows: u64,
    /// Rows without labels: part of `rows` when they are kept, beside them when they are skipped.
    pub unlabelled_rows: u64,
    /// What was done with those.
    pub unlabelled: Unlabelled,
    /// Share of the first k that are right.
    pub precision: AtK,
    /// Discounted gain over the best possible.
    pub ndcg: AtK,
    /// Share of the row's labels found.
    pub recall: AtK,
    /// Propensity-scored precision, a ratio of sums; only with propensities.
    pub psp: Option<AtK>,
    /// Propensity-scored nDCG as the repository's page has it; only with propensities.
    pub psndcg: Option<AtK>,
    /// Propensity-scored nDCG as pyxclib and napkinXC have it; only with propensities.
    pub psndcg_per_row: Option<AtK>,
    /// F1 over all decisions.
    pub micro_f1: AtK,
    /// Mean over labels of their F1.
    pub macro_f1: AtK,
    /// Mean over rows of their F1.
    pub example_f1: AtK,
    /// Share of all decisions, rows × labels, that are right.
    pub hamming_accuracy: AtK,
}

impl Report {
    /// The report as JSON: `rows`, `unlabelledRows`, `unlabelled`, then each measure as `{"1": …, "3": …}`.
    /// Propensity-scored measures have no key where no propensities were given.
    pub fn to_json(&self) -> Value {
        let mut out = Map::new();
        out.insert("rows".into(), json!(self.rows));
        out.insert("unlabelledRows".into(), json!(self.unlabelled_rows));
        out.insert("unlabelled".into(), json!(self.unlabelled.as_str()));
        let measures = [
            ("precision", Some(&self.precision)),
            ("ndcg", Some(&self.ndcg)),
            ("recall", Some(&self.recall)),
            ("psp", self.psp.as_ref()),
            ("psndcg", self.psndcg.as_ref()),
            ("psndcgPerRow", self.psndcg_per_row.as_ref()),
            ("microF1", Some(&self.micro_f1)),
            ("macroF1", Some(&self.macro_f1)),
            ("exampleF1", Some(&self.example_f1)),
            ("hammingAccuracy", Some(&self.hamming_accuracy)),
        ];
        for (name, at) in measures {
            if let Some(at) = at {
                let at: Map<String, Value> = at.iter().map(|(k, v)| (k.to_string(), json!(v))).collect();
                out.insert(name.into(), Value::Object(at));
            }
        }
        Value::Object(out)
    }
}

impl From<&Report> for Value {
    fn from(report: &Report) -> Self {
        report.to_json()
    }
}
