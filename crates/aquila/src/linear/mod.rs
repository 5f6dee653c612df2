//! Linear classifiers of sibling labels, learned together.
