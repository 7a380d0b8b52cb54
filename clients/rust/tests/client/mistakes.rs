//! Mistakes about TLS, and what a client says about them.

use std::{process::Command, sync::Arc};

use crate::fake::{Answer, FakeServer};
use muniment::{Certificate, ClientBuilder, ClientTlsConfig, Code, v1::GetMemoryRequest};
use tokio::net::TcpListener;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

/// A key and a certificate for *name*, which vouches for itself, in PEM. By openssl, as everywhere in the tests.
fn certificate(name: &str) -> String {
    let names = format!("subjectAltName={name}");
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-subj", "/CN=muniment", "-addext", &names, "-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", "-", "-out", "-"])
        .env("OPENSSL_CONF", "/dev/null")
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    String::from_utf8(made.stdout).unwrap()
}

/// The address of a listener that shakes hands with a certificate for *name*, and says nothing more. And the
/// certificate.
async fn listen(name: &str) -> (String, String) {
    let pem = certificate(name);
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(pem.as_bytes()).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let _ = acceptor.accept(socket).await;
        }
    });
    (address, pem)
}

/// What a call says that cannot be made.
async fn message_of(builder: ClientBuilder) -> String {
    let client = builder.credential("ms_1").connect().unwrap().without_retries();
    let error = client.get_memory(GetMemoryRequest { key: "tea".into() }).await.unwrap_err();
    assert_eq!((error.code(), error.reason()), (Code::Unavailable, None));
    error.message().to_owned()
}

fn trusting(pem: &str) -> ClientTlsConfig {
    ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem))
}

#[tokio::test]
async fn an_authority_that_is_not_trusted() {
    let (address, _) = listen("IP:127.0.0.1").await;
    let other = certificate("IP:127.0.0.1");

    for tls in [trusting(&other), ClientTlsConfig::new()] {
        let message = message_of(ClientBuilder::new(&address).tls(tls)).await;

        let said =
            format!("the certificate of {address} is signed by an authority that is not trusted: name");
        assert!(message.starts_with(&said), "{message}");
    }
}

#[tokio::test]
async fn a_certificate_for_other_names() {
    let (address, pem) = listen("DNS:muniment.example").await;

    let message = message_of(ClientBuilder::new(&address).tls(trusting(&pem))).await;

    let said = "is for other names: connect to one of muniment.example";
    assert_eq!(message, format!("the certificate of {address} {said}"));
}

#[tokio::test]
async fn tls_to_a_server_in_plaintext() {
    let server = FakeServer::start(|_, _| Answer::Silence).await;

    let message = message_of(ClientBuilder::new(&server.address).tls(ClientTlsConfig::new())).await;

    let said = format!("the server at {} does not speak TLS: connect without", server.address);
    assert!(message.starts_with(&said), "{message}");
}

#[tokio::test]
async fn plaintext_to_a_server_that_expects_tls() {
    let (address, _) = listen("IP:127.0.0.1").await;

    let message = message_of(ClientBuilder::new(&address)).await;

    let said = "closed the connection without an answer, as one that expects TLS does: turn TLS on by";
    assert!(message.starts_with(&format!("the server at {address} {said}")), "{message}");
}

#[tokio::test]
async fn a_server_that_is_not_there() {
    let message = message_of(ClientBuilder::new("127.0.0.1:1")).await;
    assert_eq!(message, "no connection to 127.0.0.1:1: Connection refused (os error 111)");
}
