pub(super) use super::scalar::{head, layer};
