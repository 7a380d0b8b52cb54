use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, timeout_at};
use tonic::{
    Request, Response, Status,
    codegen::tokio_stream::Stream,
    metadata::{Ascii, MetadataValue},
    transport::Channel,
};

use crate::{
    Error, InvalidSettings, Session,
    pool::Pool,
    retries::{UnaryRequest, may_repeat, pauses},
    v1,
};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(86400);

/// Calls a server with one credential: that of a host, or that of a session.
///
/// It has a method for each of the contract. Which of them a host may call and which a session, the server
/// decides. A clone is cheap and shares the connections, as do all clients that `with_…` gives.
///
/// Dropping the future of a call cancels it; a write may have happened all the same.
#[derive(Debug, Clone)]
pub struct Client {
    pool: Arc<Pool>,
    authorization: Option<MetadataValue<Ascii>>,
    timeout: Duration,
    retries: bool,
}

impl Client {
    pub(crate) fn new(pool: Pool) -> Self {
        Self { pool: Arc::new(pool), authorization: None, timeout: DEFAULT_TIMEOUT, retries: true }
    }

    /// This client with another credential: a host key or a session's token.
    ///
    /// # Errors
    ///
    /// It is empty, or has anything but visible ASCII characters.
    pub fn with_credential(&self, credential: impl AsRef<str>) -> Result<Self, InvalidSettings> {
        Ok(Self { authorization: Some(bearer(credential.as_ref())?), ..self.clone() })
    }

    /// This client with another deadline: how long a call may take, all its attempts together.
    ///
    /// The default is 10 seconds. It is for a whole stream too.
    ///
    /// # Errors
    ///
    /// It is zero, or more than a day.
    pub fn with_timeout(&self, timeout: Duration) -> Result<Self, InvalidSettings> {
        if timeout.is_zero() || timeout > LONGEST_TIMEOUT {
            return Err(InvalidSettings("a timeout is more than zero and at most a day".into()));
        }
        Ok(Self { timeout, ..self.clone() })
    }

    /// This client with every call made once. By default, a call is made again until its deadline where that is
    /// safe.
    #[must_use]
    pub fn without_retries(&self) -> Self {
        Self { retries: false, ..self.clone() }
    }

    /// The session that a call has opened.
    pub(crate) fn opened(&self, token: String, session: Option<v1::Session>) -> Result<Session, Error> {
        match self.with_credential(&token) {
            Ok(client) => Ok(Session::new(client, token, session.unwrap_or_default())),
            Err(_) => {
                Err(Error::new(Status::internal("the server sent a token that no header carries"), None))
            }
        }
    }

    /// Make a call, again if that is safe and may help, until the deadline.
    pub(crate) async fn unary<M, R, F>(
        &self,
        message: M,
        call: impl Fn(Channel, Request<M>) -> F,
    ) -> Result<R, Error>
    where
        M: UnaryRequest,
        F: Future<Output = Result<Response<R>, Status>>,
    {
        let deadline = Instant::now() + self.timeout;
        let repeatable = may_repeat(&message);
        let mut pauses = pauses();
        let attempts = async {
            loop {
                let request = self.request(message.clone(), deadline);
                let taken = self.pool.take();
                let error = match self.pool.result(call(taken.channel(), request).await) {
                    Ok(response) => return Ok(response),
                    Err(error) => error,
                };
                drop(taken);
                let again = self.retries && (error.never_began() || repeatable && error.may_pass());
                let pause = pauses.next().unwrap_or_default();
                let pause = pause.saturating_add(error.retry_delay().unwrap_or_default());
                if !again || pause >= deadline - Instant::now() {
                    return Err(error);
                }
                sleep(pause).await;
            }
        };
        timeout_at(deadline, attempts).await.unwrap_or_else(|_| Err(Error::deadline_exceeded()))
    }

    /// Make a call once: nobody but the caller has what was streamed.
    pub(crate) async fn stream<S, R, F>(
        &self,
        messages: S,
        call: impl FnOnce(Channel, Request<S>) -> F,
    ) -> Result<R, Error>
    where
        S: Stream + Send + 'static,
        F: Future<Output = Result<Response<R>, Status>>,
    {
        let deadline = Instant::now() + self.timeout;
        let taken = self.pool.take();
        let attempt = call(taken.channel(), self.request(messages, deadline));
        match timeout_at(deadline, attempt).await {
            Ok(came) => self.pool.result(came),
            Err(_) => Err(Error::deadline_exceeded()),
        }
    }

    fn request<T>(&self, message: T, deadline: Instant) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(deadline - Instant::now());
        if let Some(authorization) = &self.authorization {
            let metadata = request.metadata_mut();
            metadata.insert("authorization", authorization.clone());
        }
        request
    }
}

/// The header. Marked sensitive, so that it is neither printed nor kept in HTTP/2's table.
fn bearer(credential: &str) -> Result<MetadataValue<Ascii>, InvalidSettings> {
    let visible = !credential.is_empty() && credential.bytes().all(|byte| byte.is_ascii_graphic());
    let header = visible.then(|| format!("Bearer {credential}").parse().ok());
    let mut header: MetadataValue<Ascii> = header.flatten().ok_or(InvalidSettings(
        "a credential is visible ASCII characters: is there a line end in it?".into(),
    ))?;
    header.set_sensitive(true);
    Ok(header)
}
