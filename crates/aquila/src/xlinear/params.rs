//! Every parameter of training and prediction, each defined once.

use super::WeightKind;
use crate::error::Result;
use crate::params::{Kind, ParamSpec, Params, Value};

const MANY: f64 = u32::MAX as f64;

crate::choice! {
    /// How a label is described to k-means.
    pub enum VectorKind {
        /// The sum of the label's rows, each row shared among its labels (PIFA).
        Pifa = "pifa",
        /// The ids of the label's rows (PII).
        Pii = "pii",
    }
}

crate::choice! {
    /// How k-means splits a node.
    pub enum SplitKind {
        /// Halves of equal size, regrouped to the arity.
        Balanced = "balanced",
        /// `arity` clusters of any size.
        Kary = "kary",
    }
}

crate::choice! {
    /// Whether pifa vectors are cut before k-means.
    pub enum VectorCut {
        /// Cut, unless a trial finds that this separates labels of the same rows.
        Auto = "auto",
        /// Always cut.
        Always = "always",
        /// Never cut.
        Never = "never",
    }
}

crate::params! {
    /// How labels become a tree.
    pub struct TreeParams {
        /// How a label is described to k-means: pifa (the sum of its rows) or pii (the ids of its rows).
        pub vectors: VectorKind = VectorKind::Pifa, "tree.vectors", Kind::Choice(VectorKind::TEXTS);
        /// Whether pifa vectors are cut to tree.vectorMass and tree.vectorEntries: auto (unless a trial on some labels
        /// finds that the cut separates labels of the same rows), always or never.
        pub vector_cut: VectorCut = VectorCut::Auto, "tree.vectorCut", Kind::Choice(VectorCut::TEXTS);
        /// Share of a pifa vector's squared length that a cut keeps, in the fewest, largest entries: the small ones are
        /// mostly noise. Columns of a dense block are never cut.
        pub vector_mass: f32 = 0.8, "tree.vectorMass", Kind::Number { min: 1e-6, max: 1.0 };
        /// Maximum number of sparse entries that a cut keeps of a label's vector, the largest; 0 keeps all.
        pub vector_entries: u32 = 256, "tree.vectorEntries", Kind::Integer { min: 0.0, max: MANY };
        /// balanced: halves of equal size, regrouped to the arity; kary: arity clusters of any size.
        pub split: SplitKind = SplitKind::Balanced, "tree.split", Kind::Choice(SplitKind::TEXTS);
        /// Maximum number of labels under a leaf node. Smaller leaves train and predict faster; larger ones miss less.
        pub max_leaf: u32 = 100, "tree.maxLeaf", Kind::Integer { min: 1.0, max: MANY };
        /// Maximum number of children of an inner node. Wide nodes make shallow trees, which miss less; narrow ones
        /// train faster.
        pub arity: u32 = 64, "tree.arity", Kind::Integer { min: 2.0, max: 65536.0 };
        /// Number of layers of inner nodes removed from the top, each by joining it with the one below; 0 keeps all.
        pub collapse: u32 = 0, "tree.collapse", Kind::Integer { min: 0.0, max: 30.0 };
        /// Maximum number of k-means rounds per node.
        pub iterations: u32 = 20, "tree.iterations", Kind::Integer { min: 1.0, max: 1000.0 };
        /// Number of labels that k-means samples in a larger node before it places the rest; 0 uses all.
        pub sample: u32 = 20000, "tree.sample", Kind::Integer { min: 0.0, max: MANY };
        /// Compare directions (true) or points (false).
        pub spherical: bool = true, "tree.spherical", Kind::Bool;
    }
}

crate::choice! {
    /// The loss of a label's classifier.
    pub enum Loss {
        /// max(0, 1 − margin)².
        SquaredHinge = "squared-hinge",
        /// max(0, 1 − margin).
        Hinge = "hinge",
        /// ln(1 + exp(−margin)).
        Logistic = "logistic",
    }
}

crate::choice! {
    /// Which rows without a label are its negatives.
    pub enum Negatives {
        /// Rows of its siblings (teacher forcing).
        Siblings = "tfn",
        /// Rows that the trained layers above send to its parent.
        Matcher = "man",
        /// Both.
        Both = "tfn+man",
    }
}

crate::choice! {
    /// How the relevance of a row's labels weights their errors.
    pub enum Relevance {
        /// Every positive costs the same.
        Off = "off",
        /// Relevances (given, or the labels themselves) are summed up the tree: a node's weight is the sum of what is
        /// below it.
        Induce = "induce",
        /// As induce, but only in the layer of the labels.
        Leaves = "leaves",
    }
}

crate::choice! {
    /// How the relevances of one row are scaled in each layer.
    pub enum RelevanceNorm {
        /// Not scaled.
        None = "none",
        /// To a sum of 1.
        L1 = "l1",
        /// To a length of 1.
        L2 = "l2",
        /// To a maximum of 1.
        Max = "max",
    }
}

crate::params! {
    /// How the classifiers are learned.
    pub struct SolverParams {
        /// squared-hinge, hinge or logistic.
        pub loss: Loss = Loss::SquaredHinge, "solver.loss", Kind::Choice(Loss::TEXTS);
        /// Cost of an error on a row that has the label.
        pub cp: f32 = 1.0, "solver.cp", Kind::Number { min: 1e-6, max: 1e6 };
        /// Cost of an error on a row that does not have it.
        pub cn: f32 = 1.0, "solver.cn", Kind::Number { min: 1e-6, max: 1e6 };
        /// A label is done when its largest and smallest projected gradients differ by no more than this.
        pub eps: f32 = 0.1, "solver.eps", Kind::Number { min: 1e-6, max: 10.0 };
        /// Maximum number of passes over the rows of a node.
        pub max_passes: u32 = 20, "solver.maxPasses", Kind::Integer { min: 1.0, max: 10000.0 };
        /// Value of the constant feature of every row; 0 leaves it out.
        pub bias: f32 = 1.0, "solver.bias", Kind::Number { min: 0.0, max: 1000.0 };
        /// Weights of smaller magnitude are dropped.
        pub threshold: f32 = 0.1, "solver.threshold", Kind::Number { min: 0.0, max: 100.0 };
        /// Maximum number of weights kept per label, the largest; 0 keeps all.
        pub max_weights: u32 = 0, "solver.maxWeights", Kind::Integer { min: 0.0, max: MANY };
        /// Rows without the label to learn from: tfn (its siblings' rows), man (rows that the matcher sends there),
        /// tfn+man.
        pub negatives: Negatives = Negatives::Siblings, "solver.negatives", Kind::Choice(Negatives::TEXTS);
        /// Beam of the matcher when it selects negatives or counts rows for overlap.
        pub matcher_beam: u32 = 10, "solver.matcherBeam", Kind::Integer { min: 1.0, max: 65536.0 };
        /// off, induce (relevances summed up the tree weight the positives) or leaves (only in the last layer).
        pub relevance: Relevance = Relevance::Off, "solver.relevance", Kind::Choice(Relevance::TEXTS);
        /// none, l1, l2 or max: scaling of a row's relevances in each layer.
        pub relevance_norm: RelevanceNorm = RelevanceNorm::None, "solver.relevanceNorm", Kind::Choice(RelevanceNorm::TEXTS);
    }
}

crate::choice! {
    /// How the scores of a label's leaves become the label's score.
    pub enum Merge {
        /// The mean, over all leaves of the label, of the square roots of scores, squared. A leaf that the search did
        /// not reach counts with the highest score it can have, the lowest score of the beam, but never with more than
        /// the mean of the reached leaves.
        All = "all",
        /// The mean over the reached leaves.
        Average = "average",
        /// The largest.
        Max = "max",
        /// Their sum.
        Sum = "sum",
    }
}

crate::params! {
    /// Whether and how labels are placed under several leaves.
    pub struct OverlapParams {
        /// Maximum number of leaves per label, each with weights of its own. 1 keeps every label where the tree has it,
        /// except in the paper's form with its update (overlap.leafCap 0), which moves it to its most counted leaf. 2
        /// takes about twice the training time and less than twice the prediction time; more seldom pays.
        pub copies: u32 = 1, "overlap.copies", Kind::Integer { min: 1.0, max: 1000.0 };
        /// Maximum number of times that labels are placed anew according to where the layers above send their rows;
        /// ends early when nothing changes.
        pub rounds: u32 = 1, "overlap.rounds", Kind::Integer { min: 1.0, max: 100.0 };
        /// Whether the layers above are trained again once labels have further leaves. If not, rounds end after the
        /// first.
        pub update: bool = true, "overlap.update", Kind::Bool;
        /// How the scores of a label's leaves are combined: all (the mean of square roots over all leaves; leaves that
        /// the search does not reach count with at most the lowest score of the beam), average, max or sum (over the
        /// reached leaves). Stored in the model.
        pub merge: Merge = Merge::All, "overlap.merge", Kind::Choice(Merge::TEXTS);
        /// Number of labels up to which further ones may fill a leaf, in mean leaf sizes; above 128 labels, rounded
        /// down to a multiple of 128. 0 is the paper's form: no bound, and labels leave their leaf for more counted
        /// ones.
        pub leaf_cap: f32 = 2.0, "overlap.leafCap", Kind::Number { min: 0.0, max: 1000.0 };
        /// Minimum mean score that the layers above must give a label's rows at a further leaf; below it, the leaf is
        /// not worth its cost. The paper's form (overlap.leafCap 0) has no minimum.
        pub min_score: f32 = 0.1, "overlap.minScore", Kind::Number { min: 0.0, max: 1.0 };
        /// Maximum number of labels that are also placed under the root, where they learn from all rows: the most
        /// frequent ones, this many per node under the root. 0, and the paper's forms (overlap.leafCap 0 or
        /// overlap.update false), place none.
        pub root_cap: f32 = 1.0, "overlap.rootCap", Kind::Number { min: 0.0, max: 1e6 };
    }
}

impl OverlapParams {
    /// Whether labels may be placed under other leaves than in the given tree.
    pub fn asked(&self) -> bool {
        self.copies > 1 || (self.leaf_cap == 0.0 && self.update)
    }
}

crate::params! {
    /// What the model stores.
    pub struct ModelParams {
        /// Scale every row to length 1, in training and in every query.
        pub normalize: bool = true, "model.normalize", Kind::Bool;
        /// How weights are stored: u8, bf16 or f32. One byte is enough for the same P@k.
        pub weights: WeightKind = WeightKind::Byte, "model.weights", Kind::Choice(WeightKind::TEXTS);
    }
}

impl ModelParams {
    /// Bytes per weight.
    pub fn weights_bytes(&self) -> u64 {
        super::WeightFormat::new(self.weights, 1.0).bytes() as u64
    }
}

/// All parameters of training.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TrainParams {
    /// How labels become a tree.
    pub tree: TreeParams,
    /// How the classifiers are learned.
    pub solver: SolverParams,
    /// Whether and how labels are placed under several leaves.
    pub overlap: OverlapParams,
    /// What the model stores.
    pub model: ModelParams,
}

impl Params for TrainParams {
    fn specs() -> Vec<ParamSpec> {
        [TreeParams::specs(), SolverParams::specs(), OverlapParams::specs(), ModelParams::specs()].concat()
    }

    fn try_set(&mut self, name: &str, value: &Value) -> Result<bool> {
        Ok(self.tree.try_set(name, value)?
            || self.solver.try_set(name, value)?
            || self.overlap.try_set(name, value)?
            || self.model.try_set(name, value)?)
    }

    fn values(&self) -> Vec<(&'static str, Value)> {
        [self.tree.values(), self.solver.values(), self.overlap.values(), self.model.values()].concat()
    }
}

crate::choice! {
    /// How a margin becomes a score and is combined with its parent's. `v` is the margin; hinges have order p = 1…4. So
    /// that labels at the end of a hinge are still ordered, its logarithm loses 2⁻²⁰ per unit that v is below 3 (at most
    /// 2 units) and an eighth of that per unit that it is below 11 (at most 8 units).
    /// Scores of product forms are between 0 and 1, those of log forms at most 0, except where slots are merged by their
    /// sum; bare margins are finite. A margin that is not a number gives the lowest score.
    pub enum ScoreForm {
        /// exp(−max(0, 1−v)), times the parent's score.
        L1Hinge = "l1-hinge",
        /// exp(−max(0, 1−v)²), times the parent's score.
        L2Hinge = "l2-hinge",
        /// exp(−max(0, 1−v)³), times the parent's score.
        L3Hinge = "l3-hinge",
        /// exp(−max(0, 1−v)⁴), times the parent's score.
        L4Hinge = "l4-hinge",
        /// −max(0, 1−v), plus the parent's score.
        LogL1Hinge = "log-l1-hinge",
        /// −max(0, 1−v)², plus the parent's score.
        LogL2Hinge = "log-l2-hinge",
        /// −max(0, 1−v)³, plus the parent's score.
        LogL3Hinge = "log-l3-hinge",
        /// −max(0, 1−v)⁴, plus the parent's score.
        LogL4Hinge = "log-l4-hinge",
        /// 1 / (1 + exp(−v)), times the parent's score.
        Sigmoid = "sigmoid",
        /// ln(1 / (1 + exp(−v))), plus the parent's score.
        LogSigmoid = "log-sigmoid",
        /// The margin alone; the parent's score is ignored.
        Margin = "noop",
    }
}

crate::params! {
    /// How a row is predicted.
    pub struct PredictParams {
        /// Number of labels returned per row.
        pub k: u32 = 10, "k", Kind::Integer { min: 1.0, max: MANY };
        /// Number of nodes kept per layer: more nodes miss less and cost more.
        pub beam: u32 = 10, "beam", Kind::Integer { min: 1.0, max: 65536.0 };
        /// How margins become scores: a hinge, sigmoid or log form, or noop for the margins themselves.
        pub scores: ScoreForm = ScoreForm::L3Hinge, "scores", Kind::Choice(ScoreForm::TEXTS);
        /// Labels with a lower score are left out. Log forms give scores below 0.
        pub floor: f32 = f32::MIN, "floor", Kind::Number { min: f32::MIN as f64, max: f32::MAX as f64 };
    }
}
