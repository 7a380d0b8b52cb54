//! Mistakes about TLS, and what a client says about them.

use std::{
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::fake::{Answer, FakeServer};
use muniment::{Certificate, ClientBuilder, ClientTlsConfig, Code, Error, v1::GetMemoryRequest};
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

const DAY: Duration = Duration::from_secs(86400);

async fn error_of(builder: ClientBuilder, timeout: Duration) -> Error {
    let client = builder.credential("ms_1").connect().unwrap().with_timeout(timeout).unwrap();
    client.get_memory(GetMemoryRequest { key: "tea".into() }).await.unwrap_err()
}

/// What a call says that fails at once. If it were made again, the test would take a day.
async fn message_of(builder: ClientBuilder) -> String {
    let error = error_of(builder, DAY).await;
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

    let said = "expects TLS: turn TLS on by";
    assert!(message.starts_with(&format!("the server at {address} {said}")), "{message}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_tried_until_the_deadline() {
    let error = error_of(ClientBuilder::new("127.0.0.1:1"), Duration::from_millis(500)).await;
    assert_eq!(error.code(), Code::Unavailable);
    assert_eq!(error.message(), "no connection to 127.0.0.1:1: Connection refused (os error 111)");
}

/// As a proxy does whose server is not up yet.
#[tokio::test]
async fn a_server_that_closes_each_connection_is_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let closed = Arc::new(AtomicUsize::new(0));
    let count = closed.clone();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            drop(socket);
            count.fetch_add(1, Ordering::SeqCst);
        }
    });

    let error = error_of(ClientBuilder::new(&address), Duration::from_millis(500)).await;

    assert!(error.message().starts_with(&format!("the connection to {address} broke")), "{error}");
    // One of the first attempt, one that asks in TLS, and more.
    assert!(closed.load(Ordering::SeqCst) >= 3);
}

#[tokio::test]
async fn a_deadline_that_passes_in_an_attempt_says_why_the_one_before_it_failed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        drop(listener.accept().await);
        let silent = listener.accept().await;
        std::future::pending::<()>().await;
        drop(silent);
    });

    let builder = ClientBuilder::new(&address).tls(ClientTlsConfig::new());
    let error = error_of(builder, Duration::from_secs(1)).await;

    assert_eq!(error.code(), Code::DeadlineExceeded);
    let said = format!("after an attempt that failed: Unavailable: no connection to {address}: ");
    assert!(error.message().contains(&said), "{error}");
}
