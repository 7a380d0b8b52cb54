//! What a call is made with: the key of a host, or the token of a session.

use std::fmt;

use tonic::metadata::{Ascii, MetadataValue};

use crate::InvalidSettings;

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

/// Shows no credential.
impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Held")
    }
}
