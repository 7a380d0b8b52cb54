use std::{env, fmt, fs, net::IpAddr, time::Duration};

use tonic::{
    codegen::http::uri::Authority,
    transport::{Certificate, ClientTlsConfig, Endpoint},
};

use crate::{Client, pool::Pool};

/// A server that is back is found again soon, whatever TCP thinks of the last try.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// What a [`Client`] is made of: where the server is, whom to trust, who calls.
#[derive(Clone)]
pub struct ClientBuilder {
    address: String,
    credential: Option<String>,
    tls: Option<ClientTlsConfig>,
}

impl ClientBuilder {
    /// For the server at *address*: `host:port` or `unix:/path`.
    pub fn new(address: impl Into<String>) -> Self {
        Self { address: address.into(), credential: None, tls: None }
    }

    /// For the server and with the credential that the environment names: `MUNIMENT_ADDRESS` with either
    /// `MUNIMENT_HOST_KEY` or `MUNIMENT_TOKEN`. With `MUNIMENT_TLS_CA`, a PEM file, it uses TLS and trusts the
    /// authorities in it alone, until [`ClientBuilder::tls`].
    ///
    /// # Errors
    ///
    /// The address is missing, there is not exactly one credential, or the file cannot be read.
    pub fn from_env() -> Result<Self, InvalidSettings> {
        Self::from_variables(|name| env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, InvalidSettings> {
        let found = |name| {
            let value = variable(name)?.trim().to_owned();
            (!value.is_empty()).then_some(value)
        };
        let address = found("MUNIMENT_ADDRESS").ok_or(InvalidSettings("set MUNIMENT_ADDRESS"))?;
        let credential = match (found("MUNIMENT_HOST_KEY"), found("MUNIMENT_TOKEN")) {
            (Some(credential), None) | (None, Some(credential)) => credential,
            _ => return Err(InvalidSettings("set either MUNIMENT_HOST_KEY or MUNIMENT_TOKEN")),
        };
        let builder = Self::new(address).credential(credential);
        let Some(file) = found("MUNIMENT_TLS_CA") else {
            return Ok(builder);
        };
        let ca = fs::read(file).map_err(|_| InvalidSettings("MUNIMENT_TLS_CA names no file to read"))?;
        Ok(builder.tls(ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca))))
    }

    /// Call with *credential*: a host key or a session's token.
    ///
    /// Without one the server refuses whatever is called, until [`Client::with_credential`].
    #[must_use]
    pub fn credential(mut self, credential: impl Into<String>) -> Self {
        self.credential = Some(credential.into());
        self
    }

    /// Use TLS, with the authorities, and for mutual TLS the identity, of *tls*.
    ///
    /// Without it only a loopback address or a unix socket will do: the credential must not cross a network
    /// in the clear.
    #[must_use]
    pub fn tls(mut self, tls: ClientTlsConfig) -> Self {
        self.tls = Some(tls);
        self
    }

    /// The client. It connects when it is first used, and again whenever that is needed.
    ///
    /// # Errors
    ///
    /// The address is none, or not of this machine and without TLS; the credential or TLS cannot be used.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime, which has to keep the connections.
    pub fn connect(self) -> Result<Client, InvalidSettings> {
        let client = Client::new(Pool::new(&self.endpoint()?));
        match self.credential {
            Some(credential) => client.with_credential(credential),
            None => Ok(client),
        }
    }

    fn endpoint(&self) -> Result<Endpoint, InvalidSettings> {
        if self.tls.is_none() && !is_local(&self.address) {
            return Err(InvalidSettings(
                "without TLS only a loopback address or a unix socket will do: \
                 the credential would cross a network in the clear",
            ));
        }
        let endpoint = Endpoint::from_shared(self.uri()?)
            .and_then(|endpoint| endpoint.user_agent(concat!("muniment-rust/", env!("CARGO_PKG_VERSION"))))
            .map_err(|_| INVALID_ADDRESS)?
            .connect_timeout(CONNECT_TIMEOUT);
        match &self.tls {
            Some(tls) => endpoint
                .tls_config(tls.clone())
                .map_err(|_| InvalidSettings("a certificate or key of TLS cannot be read")),
            None => Ok(endpoint),
        }
    }

    fn uri(&self) -> Result<String, InvalidSettings> {
        if self.address.starts_with("unix:") {
            return Ok(self.address.clone());
        }
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let authority: Authority = self.address.parse().map_err(|_| INVALID_ADDRESS)?;
        authority.port().ok_or(INVALID_ADDRESS)?;
        Ok(format!("{scheme}://{authority}"))
    }
}

/// Whether what is sent to *address* stays on this machine. What is not understood does not.
fn is_local(address: &str) -> bool {
    if address.starts_with("unix:") {
        return true;
    }
    let Ok(authority) = address.parse::<Authority>() else {
        return false;
    };
    let host = authority.host().trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// Shows no credential.
impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A client cannot be made of this. Nothing was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidSettings(pub(crate) &'static str);

const INVALID_ADDRESS: InvalidSettings = InvalidSettings("an address is host:port or unix:/path");

impl fmt::Display for InvalidSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for InvalidSettings {}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(address: &str) -> Result<String, InvalidSettings> {
        let builder = ClientBuilder::new(address);
        builder.endpoint().map(|_| builder.uri().unwrap())
    }

    #[test]
    fn plaintext_stays_on_this_machine() {
        for address in ["127.0.0.1:1", "127.8.9.1:1", "[::1]:1", "localhost:1", "LocalHost:1"] {
            assert_eq!(settings(address), Ok(format!("http://{address}")));
        }
        assert_eq!(settings("unix:/run/m.sock"), Ok("unix:/run/m.sock".into()));
        for address in [
            "muniment.example:1",
            "10.0.0.1:1",
            "0.0.0.0:1",
            "localhost.example:1",
            "127.0.0.1@muniment.example:1",
            "",
        ] {
            assert!(settings(address).is_err(), "{address}");
        }
    }

    #[test]
    fn elsewhere_there_is_tls() {
        let builder = ClientBuilder::new("muniment.example:443").tls(ClientTlsConfig::new());
        assert_eq!(builder.uri(), Ok("https://muniment.example:443".into()));
        assert!(builder.endpoint().is_ok());
    }

    #[test]
    fn an_address_is_a_host_and_a_port() {
        for address in ["localhost", "localhost:", "http://localhost:1", "localhost:1/path"] {
            assert!(settings(address).is_err(), "{address}");
        }
    }

    fn from(variables: &[(&str, &str)]) -> Result<ClientBuilder, InvalidSettings> {
        ClientBuilder::from_variables(|name| {
            let found = variables.iter().find(|(each, _)| *each == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_names_an_address_and_one_credential() {
        let address = ("MUNIMENT_ADDRESS", "localhost:1");
        let key = ("MUNIMENT_HOST_KEY", " mk_1\n");
        let token = ("MUNIMENT_TOKEN", "ms_1");

        let builder = from(&[address, key, ("MUNIMENT_TOKEN", "")]).unwrap();
        assert_eq!(builder.address, "localhost:1");
        assert_eq!(builder.credential.as_deref(), Some("mk_1"));
        assert_eq!(from(&[address, token]).unwrap().credential.as_deref(), Some("ms_1"));
        assert!(from(&[address]).is_err());
        assert!(from(&[address, key, token]).is_err());
        assert!(from(&[token]).is_err());
    }

    #[test]
    fn the_environment_may_name_an_authority() {
        let file = env::temp_dir().join(format!("muniment-{}.pem", std::process::id()));
        fs::write(&file, "an authority").unwrap();
        let with = |ca: &str| {
            from(&[
                ("MUNIMENT_ADDRESS", "muniment.example:443"),
                ("MUNIMENT_TOKEN", "ms_1"),
                ("MUNIMENT_TLS_CA", ca),
            ])
        };

        let named = with(&format!("{}\n", file.display()));
        fs::remove_file(&file).unwrap();

        assert!(format!("{:?}", named.unwrap().tls).contains(&format!("{:?}", b"an authority")));
        assert!(with("").unwrap().tls.is_none());
        assert!(with(file.to_str().unwrap()).is_err());
    }

    #[test]
    fn a_credential_is_not_printed() {
        let builder = ClientBuilder::new("localhost:1").credential("mk_secret");
        assert!(!format!("{builder:?}").contains("secret"));
    }
}
