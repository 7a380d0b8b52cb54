//! Sessions that their host opens again in time.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use prost_types::Timestamp;
use tokio::time::Instant;

use crate::{
    Client, Error, Session,
    credential::Held,
    pages::MOST_RAISES,
    v1::{
        self, Classification, CloseSessionRequest, ErrorReason, GetSessionRequest, OpenSessionRequest,
        RaiseTaintRequest, ResetSessionRequest,
    },
};

/// The token of a conversation: it is renewed before it expires, or when the server says that it has.
pub(crate) struct Renewals {
    host: Client,
    ttl: Option<prost_types::Duration>,
    state: Mutex<State>,
    /// Whoever has it renews, or ends that.
    turn: tokio::sync::Mutex<()>,
}

struct State {
    now: Arc<Held>,
    due: Instant,
    /// The session of `now`, as it was last seen.
    shown: v1::Session,
    previous: Option<Arc<Held>>,
    /// The ids of the sessions that closing closes: at most those of `previous` and `now`.
    open: Vec<String>,
    over: bool,
}

/// Boxed, because a call may renew, and a renewal makes calls.
type Renewed<'a> = Pin<Box<dyn Future<Output = Result<bool, Error>> + Send + 'a>>;

impl Renewals {
    pub(crate) async fn open(host: &Client, request: OpenSessionRequest) -> Result<Self, Error> {
        let ttl = request.ttl;
        let begun = Instant::now();
        Ok(Self::new(host, ttl, &host.open_session(request).await?, begun))
    }

    fn new(host: &Client, ttl: Option<prost_types::Duration>, opened: &Session, begun: Instant) -> Self {
        let state = State {
            now: opened.held(),
            due: due(opened.opened(), begun),
            shown: opened.opened().clone(),
            previous: None,
            open: vec![opened.session_id().into()],
            over: false,
        };
        Self { host: host.clone(), ttl, state: Mutex::new(state), turn: tokio::sync::Mutex::default() }
    }

    pub(crate) fn current(&self) -> Arc<Held> {
        self.state().now.clone()
    }

    pub(crate) fn session(&self) -> v1::Session {
        self.state().shown.clone()
    }

    /// If the renewal fails, the old token is still valid for a while.
    pub(crate) async fn fresh(&self) -> Arc<Held> {
        let (now, due) = {
            let state = self.state();
            (state.now.clone(), state.due)
        };
        if Instant::now() < due {
            return now;
        }
        let _ = self.renewed(&now).await;
        self.current()
    }

    pub(crate) async fn replacement(&self, sent: &Held, refusal: &Error) -> Result<Option<Arc<Held>>, Error> {
        match refusal.reason_name().as_deref() {
            // The page token may be of that one.
            Some("PAGE_TOKEN_INVALID") => Ok(self.state().previous.clone()),
            Some(Error::EXPIRED) => Ok(self.renewed(sent).await?.then(|| self.current())),
            _ => Ok(None),
        }
    }

    pub(crate) async fn raise(&self, taint: Classification, reason: String) -> Result<(), Error> {
        self.fresh().await;
        let session_id = self.session().session_id;
        let request = RaiseTaintRequest { session_id, taint: taint.into(), reason, ..Default::default() };
        let raised = self.host.raise_taint(request).await?.session.unwrap_or_default();
        let mut state = self.state();
        if raised.session_id == state.shown.session_id {
            state.shown = raised;
        }
        Ok(())
    }

    /// Those of the conversation after it was reset. These end.
    pub(crate) async fn reset(&self, reason: String) -> Result<Self, Error> {
        self.fresh().await;
        let _turn = self.turn.lock().await;
        let begun = Instant::now();
        let request =
            ResetSessionRequest { session_id: self.session().session_id, reason, ..Default::default() };
        let reset = self.host.reset_session(request).await?;
        self.state().over = true;
        Ok(Self::new(&self.host, self.ttl, &reset, begun))
    }

    /// Renew no more, and close what is open.
    pub(crate) async fn close(&self) -> Result<(), Error> {
        let _turn = self.turn.lock().await;
        self.state().over = true;
        while let Some(session_id) = self.first_open() {
            match self.host.close_session(CloseSessionRequest { session_id }).await {
                Err(error) if !is_gone(&error) => return Err(error),
                _ => drop(self.state().open.remove(0)),
            }
        }
        Ok(())
    }

    fn first_open(&self) -> Option<String> {
        self.state().open.first().cloned()
    }

    /// Whether there is another token in place of an old one, after at most one renewal.
    fn renewed<'a>(&'a self, old: &'a Held) -> Renewed<'a> {
        Box::pin(async move {
            let _turn = self.turn.lock().await;
            if self.current().token() != old.token() {
                return Ok(true); // by another call
            }
            let Some(found) = self.renewable().await? else { return Ok(false) };
            let begun = Instant::now();
            let opened = self.reopened(found).await?;
            self.take(&opened, begun);
            Ok(true)
        })
    }

    /// Make a session the one that is open now.
    fn take(&self, opened: &Session, begun: Instant) {
        let mut state = self.state();
        let old = std::mem::replace(&mut state.now, opened.held());
        state.previous = Some(old);
        state.due = due(opened.opened(), begun);
        state.shown = opened.opened().clone();
        let older = state.open.len().saturating_sub(1);
        state.open.drain(..older);
        state.open.push(opened.session_id().into());
    }

    /// The session as it is now. None: somebody has ended it, and it is for the host to clear the model's context.
    async fn renewable(&self) -> Result<Option<v1::Session>, Error> {
        let (over, known) = {
            let state = self.state();
            (state.over, state.shown.clone())
        };
        if over {
            return Ok(None);
        }
        match self.host.get_session(GetSessionRequest { session_id: known.session_id }).await {
            // A label from which a raise had led away: the server was set back to before it.
            Ok(found) => Ok(found
                .session
                .filter(goes_on)
                .filter(|session| session.taint >= known.taint && session.integrity <= known.integrity)),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Never without a taint: the conversation may be reset meanwhile.
    async fn reopened(&self, found: v1::Session) -> Result<Session, Error> {
        let mut request = OpenSessionRequest {
            agent_id: found.agent_id,
            conversation_id: found.conversation_id,
            taint: found.taint,
            integrity: found.integrity,
            ttl: self.ttl,
            read_only: found.read_only,
        };
        for _ in 0..MOST_RAISES {
            let error = match self.host.open_session(request.clone()).await {
                Ok(opened) => return Ok(opened),
                Err(error) => error,
            };
            let Some(tainted) = error.conversation_tainted() else { return Err(error) };
            request.taint = tainted.taint;
            request.integrity = request.integrity.min(tainted.integrity);
        }
        self.host.open_session(request).await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When a quarter of the session's time is left, which began no earlier than its call.
fn due(session: &v1::Session, begun: Instant) -> Instant {
    let since_epoch = |time: Option<Timestamp>| {
        let time = time.unwrap_or_default();
        Duration::new(time.seconds.try_into().unwrap_or(0), time.nanos.try_into().unwrap_or(0))
    };
    let length = since_epoch(session.expire_time).saturating_sub(since_epoch(session.create_time));
    begun + length / 4 * 3
}

/// Whether a session has neither been closed nor reset. One that has expired is closed at that time, or not at all.
fn goes_on(session: &v1::Session) -> bool {
    session.close_time.is_none() || session.close_time == session.expire_time
}

fn is_gone(error: &Error) -> bool {
    error.reason() == Some(ErrorReason::SessionNotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_due_when_a_quarter_of_its_time_is_left() {
        let at = |seconds| Some(Timestamp { seconds, nanos: 0 });
        let session = v1::Session { create_time: at(1000), expire_time: at(4600), ..Default::default() };
        let begun = Instant::now();

        assert_eq!(due(&session, begun) - begun, Duration::from_secs(45 * 60));
    }
}
