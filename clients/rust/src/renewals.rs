//! Sessions that their host renews in time.

use std::{
    fmt,
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    Client, Error,
    v1::{self, ErrorReason, RenewSessionRequest},
};

/// Renews the session of a conversation before it expires, or when the server says that it has.
pub(crate) struct Renewals {
    host: Client,
    length: Duration,
    state: Mutex<State>,
}

struct State {
    /// The session as it was last seen.
    shown: v1::Session,
    due: Instant,
}

/// Boxed, because a call may renew, and a renewal is a call.
type Renewed<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>;

impl Renewals {
    /// Of a session that was opened by a call which began at a time.
    pub(crate) fn new(host: &Client, opened: &v1::Session, begun: Instant) -> Self {
        let length = length(opened);
        let state = State { shown: opened.clone(), due: begun + length / 4 * 3 };
        Self { host: host.clone(), length, state: Mutex::new(state) }
    }

    pub(crate) fn session(&self) -> v1::Session {
        self.state().shown.clone()
    }

    pub(crate) fn show(&self, session: v1::Session) {
        self.state().shown = session;
    }

    /// Renew the session in time. Other calls go on meanwhile, for a twentieth of its time. A failure is left to a
    /// later one: the token is valid for a while yet.
    pub(crate) async fn fresh(&self) {
        let is_due = {
            let (mut state, now) = (self.state(), Instant::now());
            let is_due = now >= state.due;
            if is_due {
                state.due = now + self.length / 20;
            }
            is_due
        };
        if is_due {
            let _ = self.renew().await;
        }
    }

    /// Whether the token of a call that was refused, and so not executed, is valid again.
    pub(crate) async fn renewed(&self, refusal: &Error) -> Result<bool, Error> {
        if refusal.reason_name().as_deref() != Some(Error::EXPIRED) {
            return Ok(false);
        }
        match self.renew().await {
            // Somebody has ended it: it is for the host to clear the model's context.
            Err(error) if error.reason() == Some(ErrorReason::SessionNotFound) => Ok(false),
            renewed => renewed.map(|()| true),
        }
    }

    fn renew(&self) -> Renewed<'_> {
        Box::pin(async move {
            let begun = Instant::now();
            let session_id = self.session().session_id;
            let ttl = self.length.try_into().ok();
            let renewed = self.host.renew_session(RenewSessionRequest { session_id, ttl }).await?;
            let mut state = self.state();
            state.shown = renewed.session.unwrap_or_default();
            state.due = begun + self.length / 4 * 3;
            Ok(())
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows no session.
impl fmt::Debug for Renewals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Renewals")
    }
}

/// How long a session lasts.
fn length(session: &v1::Session) -> Duration {
    let since_epoch = |time: Option<prost_types::Timestamp>| {
        let time = time.unwrap_or_default();
        Duration::new(time.seconds.try_into().unwrap_or(0), time.nanos.try_into().unwrap_or(0))
    };
    since_epoch(session.expire_time).saturating_sub(since_epoch(session.create_time))
}
