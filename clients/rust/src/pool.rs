//! Several connections to one server, which gives each to one of its workers.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tonic::{
    Response, Status,
    transport::{Channel, Endpoint},
};

use crate::{Error, mistakes};

const CONNECTIONS: usize = 4;

/// Spreads calls over connections. A call takes the one with the fewest calls under way, the first of several,
/// so that a program that makes one call at a time has one connection.
#[derive(Debug)]
pub(crate) struct Pool {
    address: String,
    plaintext: bool,
    /// Whether the server has ever answered.
    heard: AtomicBool,
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    channel: Channel,
    under_way: AtomicUsize,
}

/// A connection for one call, which is under way until this is dropped.
pub(crate) struct Taken<'a>(&'a Member);

impl Pool {
    pub(crate) fn new(endpoint: &Endpoint, address: String, plaintext: bool) -> Self {
        let member = |_| Member { channel: endpoint.connect_lazy(), under_way: AtomicUsize::new(0) };
        let members = (0..CONNECTIONS).map(member).collect();
        Self { address, plaintext, heard: AtomicBool::new(false), members }
    }

    /// What came of a call over one of the connections.
    pub(crate) async fn result<R>(&self, came: Result<Response<R>, Status>) -> Result<R, Error> {
        let status = match came {
            Ok(response) => {
                self.heard.store(true, Ordering::Relaxed);
                return Ok(response.into_inner());
            }
            Err(status) => status,
        };
        let silent = self.plaintext && !self.heard.load(Ordering::Relaxed);
        let mistake = mistakes::in_connection(&status, &self.address, silent).await;
        // There is no mistake in a status from the server, so the server has answered.
        self.heard.fetch_or(mistake.is_none(), Ordering::Relaxed);
        Err(Error::new(status, mistake))
    }

    pub(crate) fn take(&self) -> Taken<'_> {
        let least = self.members.iter().min_by_key(|member| member.under_way.load(Ordering::Relaxed));
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
