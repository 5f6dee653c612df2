//! The result of an evaluation.

use super::Unlabelled;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A measure at each k, from 0 to 1.
pub type AtK = BTreeMap<u32, f64>;

/// The measures of an evaluation. The formulas are on the [module's page](super).
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Number of rows that count.
    pub rows: u64,
    /// Number of rows without labels: included in `rows` when they are kept, not included when they are skipped.
    pub unlabelled_rows: u64,
    /// How rows without labels were treated.
    pub unlabelled: Unlabelled,
    /// Share of the first k labels that are correct.
    pub precision: AtK,
    /// Discounted gain over the best possible.
    pub ndcg: AtK,
    /// Share of the row's labels that were found.
    pub recall: AtK,
    /// Propensity-scored precision, a ratio of sums; only with propensities.
    pub psp: Option<AtK>,
    /// Propensity-scored nDCG as defined on the repository's page; only with propensities.
    pub psndcg: Option<AtK>,
    /// Propensity-scored nDCG as defined by pyxclib and napkinXC; only with propensities.
    pub psndcg_per_row: Option<AtK>,
    /// F1 over all decisions.
    pub micro_f1: AtK,
    /// Mean of the labels' F1.
    pub macro_f1: AtK,
    /// Mean of the rows' F1.
    pub example_f1: AtK,
    /// Share of all decisions, rows × labels, that are correct.
    pub hamming_accuracy: AtK,
}

impl Report {
    /// The report as JSON: `rows`, `unlabelledRows`, `unlabelled`, then each measure as `{"1": …, "3": …}`.
    /// Propensity-scored measures are missing if no propensities were given.
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
