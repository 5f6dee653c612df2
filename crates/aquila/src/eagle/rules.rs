//! Grouping rules for experiments: random groups, clusters, and what lies between.

use super::forecast;
use super::groups::Groups;
use crate::control::Control;
use crate::data::Features;
use crate::error::{Result, fail};
use crate::memory;
use crate::params::{Kind, Params};
use crate::rng::Rng;
use crate::tree::{Bisection, LabelVectors, Points};
use std::collections::BinaryHeap;

crate::params! {
    /// How samples are clustered into groups.
    pub struct ClusterParams {
        /// Splits from all samples down to a group, so 2 to this power groups; 0 goes by the size.
        pub depth: u32 = 0, "depth", Kind::Integer { min: 0.0, max: 30.0 };
        /// Most samples of a group, where depth is 0: as few splits as reach it.
        pub size: u32 = 8, "size", Kind::Integer { min: 1.0, max: 4_294_967_295.0 };
        /// The share of samples that change places at random: 0 leaves clusters, 1 makes random groups.
        pub noise: f32 = 0.0, "noise", Kind::Number { min: 0.0, max: 1.0 };
    }
}

impl Groups {
    /// Random groups of this many samples; the last one may have fewer.
    pub fn random(samples: usize, size: usize, seed: u64) -> Result<Self> {
        if size == 0 {
            fail!(InvalidArgument, "Expected groups of at least 1 sample but received 0");
        }
        if samples > u32::MAX as usize {
            fail!(InvalidArgument, "{samples} samples are more than ids of 32 bits can tell apart");
        }
        let mut order = memory::room(samples, "samples")?;
        order.extend(0..samples as u32);
        Rng::new(&[seed]).shuffle(&mut order);
        Self::from_lists(samples, order.chunks(size).map(<[u32]>::to_vec))
    }

    /// Refuses random groups that need more than the control's limit of memory.
    pub fn random_allowed(samples: usize, size: usize, control: &Control) -> Result<()> {
        control.allows("grouping", (samples, 0), forecast::random(samples, size), "or make groups larger")
    }

    /// Clusters: balanced 2-means over the samples, so groups of nearly equal size. Samples without features are
    /// spread over the groups.
    ///
    /// A share `noise` of all samples, at random, change places with each other: 0 leaves the clusters, 1 makes
    /// random groups. (The paper adds noise to the features instead; the share says directly how unlike a group's
    /// samples are, and keeps sparse rows sparse.)
    pub fn kmeans(x: &Features, params: &ClusterParams, control: &Control) -> Result<Self> {
        params.check()?;
        let depth = match (params.depth, params.size) {
            (depth @ 1.., _) => depth,
            (0, size) => x.rows().div_ceil(size as usize).next_power_of_two().trailing_zeros(),
        };
        // Further splits would make empty groups.
        let depth = depth.min(x.rows().next_power_of_two().trailing_zeros());
        let (x, _) = &x.narrow();
        forecast::check_clusters(x, depth, control)?;
        control.check()?;
        let how = Bisection { spherical: true, iterations: 20, sample: 20_000 };
        let (mut lists, empty) = control.install(|| -> Result<_> {
            let points = Points::new(LabelVectors::of_rows(x, control)?);
            let mut known = vec![false; x.rows()];
            points.labels.iter().for_each(|i| known[*i as usize] = true);
            let empty: Vec<u32> = (0..x.rows() as u32).filter(|i| !known[*i as usize]).collect();
            let mut lists = vec![Vec::new(); 1 << depth];
            crate::tree::halves(points, how, 1, &mut lists, control)?;
            Ok((lists, empty))
        })??;
        let mut shortest: BinaryHeap<_> =
            lists.iter().enumerate().map(|(j, l)| std::cmp::Reverse((l.len(), j))).collect();
        for i in empty {
            let Some(mut top) = shortest.peek_mut() else { break };
            lists[top.0.1].push(i);
            top.0.0 += 1;
        }
        lists.retain(|l| !l.is_empty());
        mix(&mut lists, params.noise, Rng::new(&[control.seed, u64::from(depth)]));
        Self::from_lists(x.rows(), lists)
    }
}

/// Lets a share of the samples change places at random.
fn mix(lists: &mut [Vec<u32>], share: f32, mut rng: Rng) {
    let mut places: Vec<(usize, usize)> =
        lists.iter().enumerate().flat_map(|(j, l)| (0..l.len()).map(move |i| (j, i))).collect();
    rng.shuffle(&mut places);
    places.truncate((places.len() as f64 * f64::from(share)).round() as usize);
    let mut moved: Vec<u32> = places.iter().map(|(j, i)| lists[*j][*i]).collect();
    rng.shuffle(&mut moved);
    for ((j, i), sample) in places.into_iter().zip(moved) {
        lists[j][i] = sample;
    }
}
