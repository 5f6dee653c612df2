//! Measures of ranked predictions.
//!
//! [`evaluate`] takes whole matrices; an [`Evaluator`] takes one row after another and may be merged with others, so a
//! test set never has to be in memory. All values are fractions from 0 to 1, with a map from k to value for each
//! measure.
//!
//! # Formulas
//! Source: the "Performance Metrics" section of the Extreme Classification Repository and the Matlab scripts it links
//! to, which settle the details that the formulas leave open. Row `i` has the labels `Y` and the ranked list
//! `r₁, r₂, …`; `hit(l)` is 1 where `r_l ∈ Y` and 0 otherwise; `w = 1/p` is a label's inverse propensity (see
//! [`Propensity`]); `d(n) = Σ_{l ≤ n} 1/log(l+1)` (the log's base cancels). Means are over rows.
//!
//! | name | value |
//! |---|---|
//! | `precision` | mean of `Σ_{l ≤ k} hit(l) / k` |
//! | `ndcg` | mean of `Σ_{l ≤ k} hit(l)/log(l+1) / d(min(k, \|Y\|))` |
//! | `recall` | mean of `Σ_{l ≤ k} hit(l) / \|Y\|` |
//! | `psp` | `Σ_rows Σ_{l ≤ k} hit(l)·w` over the same sum for the ideal list |
//! | `psndcg` | `Σ_rows Σ_{l ≤ k} hit(l)·w/log(l+1)` over the same sum for the ideal list |
//! | `psndcgPerRow` | as `psndcg`, but each row's two sums are first divided by `d(min(k, \|Y\|))` |
//! | `microF1` | `2 Σ_rows \|S∩Y\| / Σ_rows (\|S\| + \|Y\|)` |
//! | `macroF1` | mean over **all** labels of `2·hits / (times predicted + times true)`, a label never seen counts as 0 |
//! | `exampleF1` | mean of `2\|S∩Y\| / (\|S\| + \|Y\|)`, a row with neither counts as 0 |
//! | `hammingAccuracy` | `1 − Σ_rows \|S Δ Y\| / (rows · labels)` |
//!
//! `S` is the predicted set: the first k labels of the row's list, or fewer where the list is shorter, and of these
//! only the ones that score at least [`MetricParams::floor`]. The floor affects only the last four measures. A floor
//! with a k that no list reaches (for example, the number of labels) gives the thresholding of multi-label papers.
//!
//! # What the formulas leave open
//! - **Truth**: a stored entry that is not zero is a label; its value does not matter. Explicit zeros are not labels.
//! - **Short lists**: missing ranks are misses; `precision` still divides by k. A k above the number of labels is
//!   therefore allowed, but precision can then not reach 1.
//! - **The ideal list** of a row holds its labels by descending weight. Labels never seen in training have count 0 and
//!   thus the largest weight, and they are included.
//! - **Rows without labels** count as 0 ([`Unlabelled::Keep`], as in the scripts) or are left out of every measure
//!   ([`Unlabelled::Skip`]). The report contains the policy and both numbers of rows.
//! - **Ties** are resolved before evaluation: [`rank`] and our models put the lower label id first.
//! - **0 / 0 is 0**, so an evaluation of no rows gives all zeros with `rows` 0.
//!
//! # Where others differ
//! The same predictions give other numbers there. They differ by several points, more than most methods do.
//!
//! | measure | who | how |
//! |---|---|---|
//! | psp, psndcg | mean of row ratios | **not** what is published: the page's numbers are ratios of sums |
//! | psndcg | pyxclib, napkinXC | divide by `d(min(k, \|Y\|))`: our `psndcgPerRow`; equal only for k = 1 |
//! | psp | napkinXC, `normalize=False` | the bare sum over `k · rows`, which can exceed 1 |
//! | precision | omikuji | a list shorter than k adds nothing at all to P@k, not even its hits |
//! | recall | pyxclib's `recall_at_k`, napkinXC's C++ | leave unlabelled rows out: `Unlabelled::Skip` |
//! | truth | pyxclib, Matlab | multiply by the stored value, so it must be 0 or 1; PECOS counts explicit zeros as labels |
//! | ties | pyxclib | the last index comes first; for PECOS and us the first |
//! | propensities | napkinXC from lists | end at the largest training label, so unseen test labels are missing from the ideal list |
//! | macroF1 | LaMP, MPVAE | leave out labels that are neither predicted nor true; scikit-learn, C-GMVAE and we count them as 0 |
//! | exampleF1 | LaMP, MPVAE, C-GMVAE | leave out rows with neither labels nor predictions |
//!
//! # Cost
//! A row of n labels costs O(k log n + n log n), the second term only with propensities. An evaluator holds
//! `4 · labels · (1 + 2·|ks|)` bytes of counters for `macroF1`. 500 000 rows of 10 predictions over 670 000 labels,
//! including propensities, take 0.2 s on one core.

mod config;
mod evaluator;
mod propensity;
mod rank;
mod report;

pub use config::{MetricParams, Metrics, Unlabelled};
use evaluator::check_labels;
pub use evaluator::{Evaluator, allowed, evaluate};
pub use propensity::{Propensity, PropensityParams};
pub use rank::{leave_out, rank};
pub use report::{AtK, Report};
