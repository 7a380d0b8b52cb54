use std::{fmt, ops::Deref, sync::Arc};

use tokio::time::Instant;

use crate::{
    Client, Error, Session,
    renewals::Renewals,
    v1::{self, Classification, CloseSessionRequest, ErrorReason, RaiseTaintRequest, ResetSessionRequest},
};

/// A session that its host renews: before a call, if less than a quarter of its time is left, and when it has
/// expired.
///
/// It has all methods of [`Client`], and goes over the connections of the host. Once it has been closed or reset, it
/// is never renewed: calls fail with `CREDENTIAL_INVALID`, or `CREDENTIAL_EXPIRED` if it had expired before. A clone
/// is the same conversation. Dropping it does not close it.
#[derive(Clone)]
pub struct Conversation {
    session: Session,
    client: Client,
    host: Client,
    renewals: Arc<Renewals>,
}

impl Conversation {
    pub(crate) fn new(host: &Client, opened: &Session, begun: Instant) -> Self {
        let renewals = Arc::new(Renewals::new(host, opened.opened(), begun));
        let client = opened.renewed_by(renewals.clone());
        Self { session: opened.clone(), client, host: host.clone(), renewals }
    }

    /// The credential of the session.
    #[must_use]
    pub fn token(&self) -> &str {
        self.session.token()
    }

    /// The id of the session.
    #[must_use]
    pub fn session_id(&self) -> &str {
        self.session.session_id()
    }

    /// The session as it was when it was opened, renewed or raised by this client. Another host may have raised it
    /// since.
    #[must_use]
    pub fn session(&self) -> v1::Session {
        self.renewals.session()
    }

    /// Raise the taint. Reveal to the model only after it has returned.
    ///
    /// The *reason* is for the audit log, and must not contain content.
    ///
    /// # Errors
    ///
    /// The call failed: see [`Client::raise_taint`], which is of the host.
    pub async fn raise(&self, taint: Classification, reason: impl Into<String>) -> Result<(), Error> {
        self.renewals.fresh().await;
        let (session_id, reason) = (self.session_id().into(), reason.into());
        let request = RaiseTaintRequest { session_id, taint: taint.into(), reason, ..Default::default() };
        self.renewals.show(self.host.raise_taint(request).await?.session.unwrap_or_default());
        Ok(())
    }

    /// Start the conversation anew, at PUBLIC, as another client. By this call the host states that it has wiped
    /// the model's context. This client is over: its calls fail.
    ///
    /// # Errors
    ///
    /// The call failed: see [`Client::reset_session`].
    pub async fn reset(&self, reason: impl Into<String>) -> Result<Self, Error> {
        self.renewals.fresh().await;
        let begun = Instant::now();
        let (session_id, reason) = (self.session_id().into(), reason.into());
        let request = ResetSessionRequest { session_id, reason, ..Default::default() };
        Ok(Self::new(&self.host, &self.host.reset_session(request).await?, begun))
    }

    /// Close the session. It is no error if it has ended already.
    ///
    /// # Errors
    ///
    /// The call failed. It can be made again.
    pub async fn close(&self) -> Result<(), Error> {
        let session_id = self.session_id().into();
        match self.host.close_session(CloseSessionRequest { session_id }).await {
            Err(error) if error.reason() != Some(ErrorReason::SessionNotFound) => Err(error),
            _ => Ok(()),
        }
    }
}

impl Deref for Conversation {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

/// Shows no token.
impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation").field("session", &self.session()).finish_non_exhaustive()
    }
}
