//! The probability that a true label was recorded (its propensity), and the weight that compensates for it.

use crate::data::Csr;
use crate::error::{Result, fail};
use crate::memory;
use crate::params::Kind;
use std::sync::Arc;

crate::params! {
    /// The two constants of the propensity model.
    pub struct PropensityParams {
        /// Exponent A of the propensity model: how fast a label's weight falls with its training count.
        pub a: f64 = 0.55, "propensity.a", Kind::Number { min: 0.0, max: 100.0 };
        /// Offset B of the propensity model, added to a label's training count.
        pub b: f64 = 1.5, "propensity.b", Kind::Number { min: 1e-9, max: 1e9 };
    }
}

/// Substrings of the names of public data sets, and the constants A and B with which results on them are published. The
/// first match is used.
const PUBLISHED: [(&[&str], [f64; 2]); 4] = [
    (&["amazoncat", "wiki10", "wikiseealso"], [0.55, 1.5]),
    (&["amazon"], [0.6, 2.6]),
    (&["wiki"], [0.5, 0.4]),
    (&["bibtex", "delicious", "eurlex", "mediamill", "rcv1"], [0.55, 1.5]),
];

impl PropensityParams {
    /// The constants with which results on this data set are published, selected by substrings of its name. Case,
    /// blanks, dashes and underscores do not matter. A name without a match is refused: with silently assumed
    /// constants, results would not be comparable with any others.
    ///
    /// | the name contains | A | B |
    /// |---|---|---|
    /// | AmazonCat, Wiki10, WikiSeeAlso | 0.55 | 1.5 |
    /// | else Amazon | 0.6 | 2.6 |
    /// | else Wiki | 0.5 | 0.4 |
    /// | else Bibtex, Delicious, EURLex, Mediamill, RCV1 | 0.55 | 1.5 |
    ///
    /// Amazon and Wikipedia have their own constants on the Extreme Classification Repository's page. pyxclib names
    /// Amazon-670K, Amazon-3M and Wikipedia-500K, so AmazonCat-13K and Wiki10-31K use the constants of all others. Data
    /// sets of titles and those with label features (LF) follow the configurations of DeepXML, by pyxclib's authors, in
    /// which WikiSeeAlso also uses the constants of all others.
    pub fn for_dataset(name: &str) -> Result<Self> {
        let plain: String =
            name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
        let fits = |words: &[&str]| words.iter().any(|word| plain.contains(word));
        let Some((_, [a, b])) = PUBLISHED.into_iter().find(|(words, _)| fits(words)) else {
            let known: Vec<&str> = PUBLISHED.iter().flat_map(|(words, _)| words.iter().copied()).collect();
            fail!(
                InvalidArgument,
                "no propensity constants are known for the data set {name:?}: known are names that contain one of {}; \
                 for others give propensity.a and propensity.b",
                known.join(", ")
            );
        };
        Ok(Self { a, b })
    }
}

/// The inverse propensity `1/p` of every label, the weight of a hit in the propensity-scored measures.
///
/// `1/p_l = 1 + C·(N_l + B)^−A` with `C = (ln N − 1)·(B + 1)^A`, where `N` is the number of training rows and `N_l` the
/// number of those with label l (Jain, Prabhu, Varma: "Extreme Multi-label Loss Functions…", KDD 2016). A label not
/// seen in training has `N_l = 0` and the largest weight. For the constants see [`PropensityParams::for_dataset`].
#[derive(Debug, Clone)]
pub struct Propensity {
    // Shared, because every evaluator of a part of the rows holds it.
    weights: Arc<[f32]>,
}

impl PartialEq for Propensity {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.weights, &other.weights) || self.weights == other.weights
    }
}

impl Propensity {
    /// Takes one weight, `1/p`, per label.
    pub fn new(weights: Vec<f32>) -> Result<Self> {
        if let Some(l) = weights.iter().position(|w| !w.is_finite()) {
            fail!(NotFinite, "the propensity weight of label {l} is {}: it must be finite", weights[l]);
        }
        if let Some(l) = weights.iter().position(|w| *w < 0.0) {
            fail!(
                InvalidArgument,
                "the propensity weight of label {l} is {}: it must not be negative",
                weights[l]
            );
        }
        // They are copied to where they can be shared.
        memory::granted(size_of_val(&weights[..]) as u64, "propensities")?;
        Ok(Self { weights: weights.into() })
    }

    /// Computes the weights from the labels of the training rows (rows × labels, with the *full* number of labels).
    /// Stored zeros are not labels.
    pub fn from_counts(train_y: &Csr, a: f64, b: f64) -> Result<Self> {
        // An evaluator would refuse so many labels, but only once these stand in memory.
        super::check_labels(train_y.cols(), 1)?;
        let mut counts = memory::filled(0u32, train_y.cols(), "counts of labels")?;
        for (&l, _) in train_y.indices().iter().zip(train_y.values()).filter(|(_, v)| **v != 0.0) {
            counts[l as usize] += 1;
        }
        Self::from_label_counts(train_y.rows() as u64, &counts, a, b)
    }

    /// Computes the weights from the number of training rows and the number of rows with each label.
    pub fn from_label_counts(rows: u64, counts: &[u32], a: f64, b: f64) -> Result<Self> {
        if !(0.0..=100.0).contains(&a) {
            fail!(InvalidArgument, "Expected a number from 0 to 100 for propensity.a but received {a}");
        }
        if !(1e-9..=1e9).contains(&b) {
            fail!(InvalidArgument, "Expected a number from 1e-9 to 1e9 for propensity.b but received {b}");
        }
        // With fewer than e rows, ln N − 1 is negative, and rare labels would weigh less than common ones.
        if rows < 3 {
            fail!(
                InvalidArgument,
                "the propensity model needs at least 3 training rows but received {rows}: give the labels of the \
                 training set, not of a sample"
            );
        }
        let c = ((rows as f64).ln() - 1.0) * (b + 1.0).powf(a);
        let mut weights = memory::room(counts.len(), "propensities")?;
        weights.extend(counts.iter().map(|&n| (1.0 + c * (f64::from(n) + b).powf(-a)) as f32));
        Self::new(weights)
    }

    /// The weight of each label.
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }
}
