//! Visiting a container: range reads over the regions needed, and what they bring handed on.

use super::plan::Visit;
use super::{DecodeVisitor, Decoding, Ready, Worker};
use siltstone_store::StoreError;
use siltstone_store::container::ContainerReader;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl<S: DecodeVisitor> Decoding<'_, S> {
    /// Reads what is needed of one container, and decodes until nothing is ready.
    pub(super) fn visit(&self, visit: usize, worker: &mut Worker) {
        let Visit { container, nodes } = &self.plan.visits[visit];
        if self.visitor.is_cancelled() {
            return;
        }
        let reader = match self.chunks.reader(*container) {
            Ok(reader) => reader,
            Err(error) => return self.fail_all(nodes, &Arc::new(error)),
        };
        if self.visitor.reads_whole(*container) {
            self.visit_whole(*container, nodes, &reader, worker);
        } else {
            self.visit_regions(*container, nodes, &reader, worker);
        }
    }

    fn visit_regions(&self, container: usize, nodes: &[u32], reader: &Arc<ContainerReader>, worker: &mut Worker) {
        // What has failed because of a base need not be read.
        let nodes: Vec<u32> = {
            let shared = self.lock();
            nodes.iter().copied().filter(|node| !shared.waiting.is_done(*node)).collect()
        };
        if nodes.is_empty() {
            return;
        }
        let mut runs = self.plan.runs(&nodes, reader.index().regions(), &self.settings);
        if !self.plan.is_plain {
            runs.reverse();
        }
        let mut bytes_read = 0;
        for run in runs {
            if self.visitor.is_cancelled() {
                return;
            }
            let Some(nodes) = nodes.get(run) else { continue };
            match self.read(nodes, reader) {
                Ok((arrived, bytes)) => {
                    bytes_read += bytes;
                    self.hand_on(arrived);
                    self.drain(worker);
                }
                Err(error) => self.fail_all(nodes, &Arc::new(error)),
            }
        }
        self.count(container, bytes_read);
    }

    /// Reads the regions from the first of these nodes to the last; gives those of the nodes, and how many bytes were
    /// read.
    fn read(&self, nodes: &[u32], reader: &Arc<ContainerReader>) -> Result<(Vec<Ready>, u64), StoreError> {
        let region = |node: &u32| self.plan.address(*node as usize).region;
        let (Some(first), Some(last)) = (nodes.first().map(region), nodes.last().map(region)) else {
            return Ok((Vec::new(), 0));
        };
        let sealed = self.chunks.sealed_run(reader, first..last + 1)?;
        let bytes = sealed.iter().map(|sealed| sealed.len() as u64).sum();
        let mut wanted = nodes.iter().peekable();
        let mut arrived = Vec::with_capacity(nodes.len());
        for (at, sealed) in (first..).zip(sealed) {
            if let Some(node) = wanted.next_if(|node| region(node) == at) {
                arrived.push(Ready::Sealed { node: *node, reader: reader.clone(), sealed });
            }
        }
        Ok((arrived, bytes))
    }

    fn visit_whole(&self, container: usize, nodes: &[u32], reader: &Arc<ContainerReader>, worker: &mut Worker) {
        let name = reader.object_name();
        let object = self.chunks.repository().storage().read(name, name.bytes_max()).map_err(StoreError::from);
        let object = self.chunks.or_healed(self.chunks.source_of(reader), object, |object| Ok(object.to_vec()));
        let object = object.map_err(Arc::new);
        self.visitor.whole(container, reader, object.as_deref());
        let object = match object {
            Ok(object) => object,
            Err(error) => {
                self.fail_all(nodes, &error);
                return self.count(container, 0);
            }
        };
        for node in nodes.iter().rev() {
            let sealed_in = |object: &[u8]| {
                let sealed = reader.sealed_in(object, self.plan.address(*node as usize).region)?;
                Ok(sealed.to_vec())
            };
            match self.chunks.or_healed(self.chunks.source_of(reader), sealed_in(&object), sealed_in) {
                Ok(sealed) => {
                    self.hand_on(vec![Ready::Sealed { node: *node, reader: reader.clone(), sealed }]);
                    self.drain(worker);
                }
                Err(error) => self.fail_itself(*node, error),
            }
        }
        self.count(container, object.len() as u64);
    }

    /// Puts regions into the list of those ready, behind what waits there already.
    fn hand_on(&self, mut arrived: Vec<Ready>) {
        if !self.plan.is_plain {
            arrived.reverse();
        }
        self.lock().ready.extend(arrived);
        self.changed.notify_all();
    }

    fn count(&self, container: usize, bytes_read: u64) {
        self.tally.containers_read.fetch_add(1, Ordering::Relaxed);
        self.tally.bytes_read.fetch_add(bytes_read, Ordering::Relaxed);
        self.visitor.visited(container, bytes_read);
    }

    fn fail_all(&self, nodes: &[u32], error: &Arc<StoreError>) {
        for node in nodes {
            self.fail(*node, error);
        }
    }
}
