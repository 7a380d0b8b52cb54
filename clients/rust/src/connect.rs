use std::{borrow::Cow, env, fmt, fs, net::IpAddr, time::Duration};

use tonic::{
    codegen::http::uri::Authority,
    transport::{Certificate, ClientTlsConfig, Endpoint},
};

use crate::{Client, mistakes, pool::Pool};

/// A server that is back is found again soon, whatever TCP thinks of the last try.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection that has fallen silent during a call is asked after this time whether anyone is there, and given up
/// after as long again without an answer.
const SILENCE: Duration = Duration::from_secs(10);

const CERTIFICATE: &[u8] = b"-----BEGIN CERTIFICATE-----";

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

    /// For the server and with the credential that the environment names: `MUNIMENT_ADDRESS` with
    /// `MUNIMENT_HOST_KEY` if it is set, else with `MUNIMENT_TOKEN`. With `MUNIMENT_TLS_CA`, a PEM file, it uses TLS and trusts the
    /// authorities in it alone, until [`ClientBuilder::tls`].
    ///
    /// # Errors
    ///
    /// The address is missing, there is no credential, or the file cannot be read or holds no certificate.
    pub fn from_env() -> Result<Self, InvalidSettings> {
        Self::from_variables(|name| env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, InvalidSettings> {
        let found = |name| {
            let value = variable(name)?.trim().to_owned();
            (!value.is_empty()).then_some(value)
        };
        let address = found("MUNIMENT_ADDRESS").ok_or(InvalidSettings("set MUNIMENT_ADDRESS".into()))?;
        let credential = found("MUNIMENT_HOST_KEY")
            .or_else(|| found("MUNIMENT_TOKEN"))
            .ok_or(InvalidSettings("set MUNIMENT_HOST_KEY or MUNIMENT_TOKEN".into()))?;
        let builder = Self::new(address).credential(credential);
        let Some(file) = found("MUNIMENT_TLS_CA") else {
            return Ok(builder);
        };
        let ca =
            fs::read(file).map_err(|_| InvalidSettings("MUNIMENT_TLS_CA names no file to read".into()))?;
        if !ca.windows(CERTIFICATE.len()).any(|part| part == CERTIFICATE) {
            // No authority would be trusted, and every call would fail as if the server had another one.
            return Err(InvalidSettings("the file of MUNIMENT_TLS_CA holds no certificate in PEM".into()));
        }
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
        let client = Client::new(Pool::new(&self.endpoint()?, self.address, self.tls.is_none()));
        match self.credential {
            Some(credential) => client.with_credential(credential),
            None => Ok(client),
        }
    }

    fn endpoint(&self) -> Result<Endpoint, InvalidSettings> {
        if let Some(mistake) = mistakes::in_address(&self.address) {
            return Err(InvalidSettings(mistake.into()));
        }
        if self.tls.is_none() && !is_local(&self.address) {
            return Err(InvalidSettings(mistakes::PLAINTEXT_ELSEWHERE.into()));
        }
        let endpoint = Endpoint::from_shared(self.uri())
            .and_then(|endpoint| endpoint.user_agent(concat!("muniment-rust/", env!("CARGO_PKG_VERSION"))))
            .map_err(|_| InvalidSettings("an address is host:port or unix:/path".into()))?
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(SILENCE)
            .keep_alive_timeout(SILENCE);
        match &self.tls {
            Some(tls) => endpoint
                .tls_config(tls.clone())
                .map_err(|_| InvalidSettings("a certificate or key of TLS cannot be read".into())),
            None => Ok(endpoint),
        }
    }

    fn uri(&self) -> String {
        match &self.tls {
            _ if self.address.starts_with("unix:") => self.address.clone(),
            Some(_) => format!("https://{}", self.address),
            None => format!("http://{}", self.address),
        }
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidSettings(pub(crate) Cow<'static, str>);

impl fmt::Display for InvalidSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidSettings {}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(address: &str) -> Result<String, InvalidSettings> {
        let builder = ClientBuilder::new(address);
        builder.endpoint().map(|_| builder.uri())
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
        assert_eq!(builder.uri(), "https://muniment.example:443");
        assert!(builder.endpoint().is_ok());
    }

    #[test]
    fn an_address_is_a_host_and_a_port() {
        let too_large = "localhost:65536";
        for address in ["localhost:1/path", too_large, "ada@localhost:1", "local host:1"] {
            assert_eq!(settings(address).unwrap_err().to_string(), "an address is host:port or unix:/path");
        }
    }

    #[test]
    fn a_mistake_in_an_address_is_named() {
        for (address, said) in [
            (
                "http://127.0.0.1:1",
                "an address has no scheme such as http://: give host:port alone, such as 127.0.0.1:1",
            ),
            ("grpc://localhost:1", "such as localhost:1"),
            ("dns:///localhost:1", "such as localhost:1"),
            ("https://ada:secret@localhost:1/v1", "such as localhost:1, and turn TLS on by"),
            ("localhost", "localhost has no port: give host:port, such as localhost:50051, or unix:/path"),
            ("localhost:", "such as localhost:50051"),
            ("::1", "such as [::1]:50051"),
            ("[::1]", "such as [::1]:50051"),
            ("", "an address is needed: host:port or unix:/path"),
            ("muniment.example:1", "turn TLS on by ClientBuilder::tls or MUNIMENT_TLS_CA"),
        ] {
            let message = settings(address).unwrap_err().to_string();
            assert!(message.contains(said) && !message.contains("secret"), "{address}: {message}");
        }
    }

    fn from(variables: &[(&str, &str)]) -> Result<ClientBuilder, InvalidSettings> {
        ClientBuilder::from_variables(|name| {
            let found = variables.iter().find(|(each, _)| *each == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_names_an_address_and_a_credential() {
        let address = ("MUNIMENT_ADDRESS", "localhost:1");
        let key = ("MUNIMENT_HOST_KEY", " mk_1\n");
        let token = ("MUNIMENT_TOKEN", "ms_1");

        let builder = from(&[address, key, ("MUNIMENT_TOKEN", "")]).unwrap();
        assert_eq!(builder.address, "localhost:1");
        assert_eq!(builder.credential.as_deref(), Some("mk_1"));
        assert_eq!(from(&[address, token]).unwrap().credential.as_deref(), Some("ms_1"));
        assert!(from(&[address]).is_err());
        assert_eq!(from(&[address, key, token]).unwrap().credential.as_deref(), Some("mk_1"));
        assert!(from(&[token]).is_err());
    }

    #[test]
    fn the_environment_may_name_an_authority() {
        let file = env::temp_dir().join(format!("muniment-{}.pem", std::process::id()));
        fs::write(&file, CERTIFICATE).unwrap();
        let with = |ca: &str| {
            from(&[
                ("MUNIMENT_ADDRESS", "muniment.example:443"),
                ("MUNIMENT_TOKEN", "ms_1"),
                ("MUNIMENT_TLS_CA", ca),
            ])
        };

        let named = with(&format!("{}\n", file.display()));
        fs::write(&file, "-----BEGIN PRIVATE KEY-----").unwrap();
        let no_certificate = with(file.to_str().unwrap());
        fs::remove_file(&file).unwrap();

        assert!(format!("{:?}", named.unwrap().tls).contains(&format!("{CERTIFICATE:?}")));
        assert!(
            no_certificate.unwrap_err().to_string().contains("MUNIMENT_TLS_CA holds no certificate in PEM")
        );
        assert!(with("").unwrap().tls.is_none());
        assert!(with(file.to_str().unwrap()).is_err());
    }

    #[test]
    fn a_credential_is_not_printed() {
        let builder = ClientBuilder::new("localhost:1").credential("mk_secret");
        assert!(!format!("{builder:?}").contains("secret"));
    }
}
