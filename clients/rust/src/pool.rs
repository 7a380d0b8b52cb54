//! Several connections to one server, which gives each to one of its workers.

use std::sync::atomic::{AtomicUsize, Ordering};

use tonic::transport::{Channel, Endpoint};

const CONNECTIONS: usize = 4;

/// Spreads calls over connections. A call takes the one with the fewest calls under way, the first of several,
/// so that a program that makes one call at a time has one connection.
#[derive(Debug)]
pub(crate) struct Pool(Vec<Member>);

#[derive(Debug)]
struct Member {
    channel: Channel,
    under_way: AtomicUsize,
}

/// A connection for one call, which is under way until this is dropped.
pub(crate) struct Taken<'a>(&'a Member);

impl Pool {
    pub(crate) fn new(endpoint: &Endpoint) -> Self {
        let member = |_| Member { channel: endpoint.connect_lazy(), under_way: AtomicUsize::new(0) };
        Self((0..CONNECTIONS).map(member).collect())
    }

    pub(crate) fn take(&self) -> Taken<'_> {
        let least = self.0.iter().min_by_key(|member| member.under_way.load(Ordering::Relaxed));
        let member = least.expect("there is at least one connection");
        member.under_way.fetch_add(1, Ordering::Relaxed);
        Taken(member)
    }
}

impl Taken<'_> {
    pub(crate) fn channel(&self) -> Channel {
        self.0.channel.clone()
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}
