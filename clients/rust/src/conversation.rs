use std::{fmt, ops::Deref, sync::Arc};

use crate::{
    Client, Error,
    renewals::Renewals,
    v1::{self, Classification},
};

/// A session that its host opens again in the same conversation: before a call, if less than a quarter of its time
/// is left, and when it has expired.
///
/// It has all methods of [`Client`], and goes over the connections of the host. Its token and its session are then
/// the new ones. Once it has been closed or reset, it is never opened again: calls fail with `CREDENTIAL_INVALID`, or
/// `CREDENTIAL_EXPIRED` if it had expired before. A clone is the same conversation. Dropping it does not close it.
#[derive(Clone)]
pub struct Conversation {
    client: Client,
    host: Client,
    renewals: Arc<Renewals>,
}

impl Conversation {
    pub(crate) fn new(host: &Client, renewals: Renewals) -> Self {
        let renewals = Arc::new(renewals);
        Self { client: host.renewed_by(renewals.clone()), host: host.clone(), renewals }
    }

    /// The credential of the session that is open now.
    #[must_use]
    pub fn token(&self) -> String {
        self.renewals.current().token().into()
    }

    /// The id of the session that is open now.
    #[must_use]
    pub fn session_id(&self) -> String {
        self.session().session_id
    }

    /// The session that is open now: as it was when it was opened, or raised by this client. Another host may have
    /// raised it since.
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
        self.renewals.raise(taint, reason.into()).await
    }

    /// Start the conversation anew, at PUBLIC, as another client. By this call the host states that it has wiped
    /// the model's context. This client is over: its calls fail.
    ///
    /// # Errors
    ///
    /// The call failed: see [`Client::reset_session`].
    pub async fn reset(&self, reason: impl Into<String>) -> Result<Self, Error> {
        Ok(Self::new(&self.host, self.renewals.reset(reason.into()).await?))
    }

    /// Close the session, and the one before the last renewal. It is no error if they have ended already.
    ///
    /// # Errors
    ///
    /// A call failed. It can be made again.
    pub async fn close(&self) -> Result<(), Error> {
        self.renewals.close().await
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
