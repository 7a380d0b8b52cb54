//! A server in this process that answers every method as a test says.

use std::{
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http_body_util::{BodyExt, Full};
use hyper::{
    HeaderMap,
    body::{Bytes, Incoming},
    header::HeaderValue,
    server::conn::http2,
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::{
    net::{TcpListener, TcpStream},
    time::sleep,
};
use tonic::{Status, body::Body, codegen::http};

/// One call, as it arrived.
#[derive(Clone)]
pub struct Call {
    /// `MemoryService/GetMemory`.
    pub method: String,
    pub metadata: HeaderMap,
    messages: Vec<Bytes>,
}

impl Call {
    /// What was sent: one message, or those of a stream.
    pub fn messages<M: Message + Default>(&self) -> Vec<M> {
        self.messages.iter().map(|each| M::decode(each.clone()).unwrap()).collect()
    }
}

/// What the server does with a call.
pub enum Answer {
    Message(Vec<u8>),
    Error(Status),
    /// Nothing, ever.
    Silence,
}

/// An answer of *message*.
pub fn message(message: impl Message) -> Answer {
    Answer::Message(message.encode_to_vec())
}

#[derive(Clone)]
pub struct FakeServer {
    pub address: String,
    calls: Arc<Mutex<Vec<Call>>>,
    connections: Arc<AtomicUsize>,
}

impl FakeServer {
    /// A server that answers as *answer* says, given the call and how many came before it.
    pub async fn start(answer: impl Fn(&Call, usize) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1:0", answer).await
    }

    /// The same at an address.
    pub async fn start_at(
        address: &str,
        answer: impl Fn(&Call, usize) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self::listen(address, Duration::MAX, answer).await
    }

    /// A server that lets go of each connection when it is *age* old. Calls that have begun finish.
    pub async fn start_aging(
        age: Duration,
        answer: impl Fn(&Call, usize) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self::listen("127.0.0.1:0", age, answer).await
    }

    async fn listen(
        address: &str,
        age: Duration,
        answer: impl Fn(&Call, usize) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = Self { address, calls: Arc::default(), connections: Arc::default() };
        tokio::spawn(server.clone().accept(listener, age, Arc::new(answer)));
        server
    }

    /// How many connections there have been.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// The calls so far.
    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    async fn accept<A>(self, listener: TcpListener, age: Duration, answer: Arc<A>)
    where
        A: Fn(&Call, usize) -> Answer + Send + Sync + 'static,
    {
        while let Ok((socket, _)) = listener.accept().await {
            self.connections.fetch_add(1, Ordering::SeqCst);
            // What arrives too late must not reset the connection: the client would miss that it was refused.
            let socket = socket.into_std().unwrap();
            let lingering = socket.try_clone().unwrap();
            let socket = TcpStream::from_std(socket).unwrap();
            let (server, answer) = (self.clone(), answer.clone());
            let service = service_fn(move |request| server.clone().serve(request, answer.clone()));
            tokio::spawn(async move {
                let connection =
                    http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(socket), service);
                let mut connection = std::pin::pin!(connection);
                tokio::select! {
                    _ = connection.as_mut() => return,
                    () = sleep(age) => connection.as_mut().graceful_shutdown(),
                }
                let _ = connection.await;
                sleep(Duration::from_secs(1)).await;
                drop(lingering);
            });
        }
    }

    async fn serve<A>(
        self,
        request: hyper::Request<Incoming>,
        answer: Arc<A>,
    ) -> Result<hyper::Response<Body>, Infallible>
    where
        A: Fn(&Call, usize) -> Answer,
    {
        let (head, body) = request.into_parts();
        let Ok(body) = body.collect().await else { std::future::pending().await };
        let call = Call {
            method: head.uri.path().trim_start_matches("/muniment.v1.").to_owned(),
            metadata: head.headers,
            messages: unframe(body.to_bytes()),
        };
        let earlier = {
            let mut calls = self.calls.lock().unwrap();
            calls.push(call.clone());
            calls.len() - 1
        };
        match answer(&call, earlier) {
            Answer::Message(message) => Ok(response(&message)),
            Answer::Error(status) => Ok(status.into_http()),
            Answer::Silence => std::future::pending().await,
        }
    }
}

fn response(message: &[u8]) -> hyper::Response<Body> {
    let mut frame = vec![0];
    frame.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    frame.extend(message);
    let trailers = HeaderMap::from_iter([("grpc-status".parse().unwrap(), HeaderValue::from_static("0"))]);
    let body = Full::new(Bytes::from(frame)).with_trailers(std::future::ready(Some(Ok(trailers))));
    http::Response::builder().header("content-type", "application/grpc").body(Body::new(body)).unwrap()
}

/// The messages of a body: each behind a flag and its length.
fn unframe(mut body: Bytes) -> Vec<Bytes> {
    let mut messages = Vec::new();
    while !body.is_empty() {
        let header = body.split_to(5);
        let length = u32::from_be_bytes(header[1..].try_into().unwrap());
        messages.push(body.split_to(length as usize));
    }
    messages
}
