//! What a call is made with: the key of a host, or the token of a session, which may be renewed.

use std::{fmt, sync::Arc};

use tonic::metadata::{Ascii, MetadataValue};

use crate::{Error, InvalidSettings, renewals::Renewals};

/// A host key or a token, as it is sent.
pub(crate) struct Held {
    token: String,
    authorization: MetadataValue<Ascii>,
}

impl Held {
    /// One that no header carries is refused without being shown. The header is marked sensitive, so that it is
    /// neither printed nor kept in HTTP/2's table.
    pub(crate) fn new(token: &str) -> Result<Self, InvalidSettings> {
        let visible = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        let header = visible.then(|| format!("Bearer {token}").parse().ok());
        let mut authorization: MetadataValue<Ascii> = header.flatten().ok_or(InvalidSettings(
            "a credential is visible ASCII characters: is there a line end in it?".into(),
        ))?;
        authorization.set_sensitive(true);
        Ok(Self { token: token.into(), authorization })
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    pub(crate) fn authorization(&self) -> MetadataValue<Ascii> {
        self.authorization.clone()
    }
}

/// What a client calls with.
#[derive(Clone)]
pub(crate) enum Credential {
    Fixed(Arc<Held>),
    Renewed(Arc<Renewals>),
}

impl Credential {
    /// What a call sends that begins now.
    pub(crate) async fn fresh(&self) -> Arc<Held> {
        match self {
            Self::Fixed(held) => held.clone(),
            Self::Renewed(renewals) => renewals.fresh().await,
        }
    }

    /// Another for a call that was refused, and so not executed. None: the refusal stands.
    pub(crate) async fn replacement(&self, sent: &Held, refusal: &Error) -> Result<Option<Arc<Held>>, Error> {
        match self {
            Self::Fixed(_) => Ok(None),
            Self::Renewed(renewals) => renewals.replacement(sent, refusal).await,
        }
    }
}

/// Shows no credential.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential")
    }
}
