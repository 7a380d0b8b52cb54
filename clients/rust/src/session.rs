use std::{fmt, ops::Deref, sync::Arc};

use crate::{
    Client, Error,
    credential::Held,
    v1::{self, Classification, CloseSessionRequest},
};

/// A session that a host has opened: a [`Client`] whose credential is the session's token.
///
/// It has all methods of [`Client`], and goes over the connections of the host. A clone is the same session.
/// Dropping it does not close the session.
#[derive(Clone)]
pub struct Session {
    client: Client,
    held: Arc<Held>,
    opened: v1::Session,
}

impl Session {
    pub(crate) fn new(client: Client, held: Arc<Held>, opened: v1::Session) -> Self {
        Self { client, held, opened }
    }

    /// The credential. Whoever has it is this session: [`Client::with_credential`] makes a client of it.
    #[must_use]
    pub fn token(&self) -> &str {
        self.held.token()
    }

    /// The id, by which a host raises the taint.
    #[must_use]
    pub fn session_id(&self) -> &str {
        &self.opened.session_id
    }

    /// The taint at which the session was opened. A host may have raised it since: [`Client::get_session`] asks.
    #[must_use]
    pub fn taint(&self) -> Classification {
        self.opened.taint()
    }

    /// The highest level that the conversation may reach.
    #[must_use]
    pub fn ceiling(&self) -> Classification {
        self.opened.ceiling()
    }

    /// The session as it was when it was opened.
    #[must_use]
    pub fn opened(&self) -> &v1::Session {
        &self.opened
    }

    /// Close the session. Its token is invalid from then on.
    ///
    /// # Errors
    ///
    /// The call failed. `CREDENTIAL_INVALID`: the session is closed already, was reset, or has expired.
    pub async fn close(&self) -> Result<(), Error> {
        self.close_session(CloseSessionRequest::default()).await.map(drop)
    }
}

impl Deref for Session {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

/// Shows no token.
impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("opened", &self.opened).finish_non_exhaustive()
    }
}
