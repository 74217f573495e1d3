//! Running experiments: every subject once a round, each sample kept as soon as it is there.
