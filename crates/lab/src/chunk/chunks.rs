//! Going through the chunks of some data by their lengths.

/// The chunks of these lengths, in order.
#[derive(Clone, Debug)]
pub(super) struct Chunks<'c> {
    lengths: std::slice::Iter<'c, usize>,
    rest: &'c [u8],
}

impl<'c> Chunks<'c> {
    /// Takes chunks of this data, which the lengths must not exceed.
    pub(super) fn of(lengths: &'c [usize], data: &'c [u8]) -> Self {
        Self { lengths: lengths.iter(), rest: data }
    }
}

impl<'c> Iterator for Chunks<'c> {
    type Item = &'c [u8];

    fn next(&mut self) -> Option<&'c [u8]> {
        let (chunk, rest) = self.rest.split_at(*self.lengths.next()?);
        self.rest = rest;
        Some(chunk)
    }
}
