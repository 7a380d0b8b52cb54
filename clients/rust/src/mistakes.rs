//! Mistakes in an address, or about TLS, and what a client says about them.

use std::{error::Error, io, net::Ipv6Addr, sync::Arc, time::Duration};

use rustls::{CertificateError, ClientConfig, ClientConnection, RootCertStore, crypto::ring};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tonic::{ConnectError, Status, codegen::http::uri::Authority};

use crate::error::sources;

/// How to use TLS.
macro_rules! turn_on {
    () => {
        "turn TLS on by ClientBuilder::tls or MUNIMENT_TLS_CA"
    };
}

/// How long a server may take to answer when it is asked whether it speaks TLS.
const PROBE: Duration = Duration::from_secs(2);

// Types of TLS records (RFC 8446, section 5.1). A server without TLS sends neither first.
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;

pub(crate) const PLAINTEXT_ELSEWHERE: &str = concat!(
    "without TLS only a loopback address or a unix socket will do, because the credential would cross a network \
     in the clear: ",
    turn_on!()
);

/// What is wrong with *address*, if it is no `host:port` and no unix socket.
pub(crate) fn in_address(address: &str) -> Option<String> {
    if address.is_empty() {
        return Some("an address is needed: host:port or unix:/path".into());
    }
    if address.starts_with("unix:") {
        return None;
    }
    if let Some((scheme, rest)) = address.split_once("://") {
        return Some(has_scheme(scheme, rest));
    }
    match address.parse::<Authority>() {
        Ok(authority) if authority.port_u16().is_some() && !authority.as_str().contains('@') => None,
        Ok(authority) if authority.host() == address.trim_end_matches(':') => {
            Some(lacks_port(address, authority.host()))
        }
        Err(_) if address.parse::<Ipv6Addr>().is_ok() => Some(lacks_port(address, &format!("[{address}]"))),
        _ => Some("an address is host:port or unix:/path".into()),
    }
}

fn has_scheme(scheme: &str, rest: &str) -> String {
    let authority = rest.trim_start_matches('/').split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let tls =
        if scheme.ends_with(['s', 'S']) && scheme != "dns" { concat!(", and ", turn_on!()) } else { "" };
    format!("an address has no scheme such as {scheme}://: give host:port alone, such as {host}{tls}")
}

fn lacks_port(address: &str, host: &str) -> String {
    format!("{address} has no port: give host:port, such as {host}:50051, or unix:/path")
}

/// Why there was no connection, or it broke.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub(crate) message: String,
    /// Whether another attempt would fail for the same reason.
    pub(crate) lasts: bool,
}

/// What is wrong with the connection to *address*, by which a call failed. *silent*: the server has said nothing yet
/// in plaintext; then it is asked whether it speaks TLS.
pub(crate) async fn in_connection(status: &Status, address: &str, silent: bool) -> Option<Mistake> {
    let cause = sources(status).last()?.to_string();
    if let Some(message) = sources(status).find_map(rustls_error).and_then(|error| in_tls(error, address)) {
        return Some(Mistake { message, lasts: true });
    }
    if sources(status).any(<dyn Error>::is::<ConnectError>) {
        return Some(Mistake { message: format!("no connection to {address}: {cause}"), lasts: false });
    }
    if silent && speaks_tls(address).await {
        let message = format!(concat!("the server at {} expects TLS: ", turn_on!()), address);
        return Some(Mistake { message, lasts: true });
    }
    Some(Mistake { message: format!("the connection to {address} broke: {cause}"), lasts: false })
}

/// Whether a server answers the first message of TLS. Nothing else is sent to it.
async fn speaks_tls(address: &str) -> bool {
    let answer = timeout(PROBE, first_byte_in_tls(address)).await;
    matches!(answer, Ok(Ok(HANDSHAKE | ALERT)))
}

async fn first_byte_in_tls(address: &str) -> Result<u8, Box<dyn Error>> {
    let mut hello = Vec::new();
    ClientConnection::new(Arc::new(without_trust()?), "localhost".try_into()?)?.write_tls(&mut hello)?;
    let mut server = TcpStream::connect(address).await?;
    server.write_all(&hello).await?;
    Ok(server.read_u8().await?)
}

fn without_trust() -> Result<ClientConfig, rustls::Error> {
    let versions = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?;
    Ok(versions.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

/// The error of TLS that an error of a connection contains.
fn rustls_error<'a>(source: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    source.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref()
}

fn in_tls(error: &rustls::Error, address: &str) -> Option<String> {
    Some(match error {
        rustls::Error::InvalidMessage(_) => format!(
            "the server at {address} does not speak TLS: connect without ClientBuilder::tls and MUNIMENT_TLS_CA, \
             which is possible on its own machine, or give the server a certificate"
        ),
        // A bad signature: an authority of the same name has another key.
        rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        ) => format!(
            "the certificate of {address} is signed by an authority that is not trusted: name its authority by \
             ClientTlsConfig::ca_certificate or MUNIMENT_TLS_CA"
        ),
        rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext { presented, .. }) => {
            let names: Vec<_> = presented.iter().map(|name| bare(name)).collect();
            format!("the certificate of {address} is for other names: connect to one of {}", names.join(", "))
        }
        rustls::Error::InvalidCertificate(_) => {
            format!("the certificate of {address} is not accepted: give the server another one ({error})")
        }
        _ => return None,
    })
}

/// A name as rustls shows it, such as `DnsName("localhost")`, without what is around it.
fn bare(name: &str) -> &str {
    let inner = name.split_once('(').map_or(name, |(_, inner)| inner);
    inner.trim_matches(['"', ')'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_does_not_answer_in_tls_does_not_expect_it() {
        let broken = Status::from_error(io::Error::new(io::ErrorKind::BrokenPipe, "a broken pipe").into());
        for silent in [true, false] {
            let mistake = in_connection(&broken, "localhost:1", silent).await.unwrap();
            assert_eq!(mistake.message, "the connection to localhost:1 broke: a broken pipe");
            assert!(!mistake.lasts);
        }
    }

    #[tokio::test]
    async fn what_the_server_says_is_no_mistake() {
        assert_eq!(in_connection(&Status::unavailable("away"), "localhost:1", true).await, None);
    }
}
