use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, timeout_at};
use tonic::{Request, Response, Status, codegen::tokio_stream::Stream, transport::Channel};

use crate::{
    Conversation, Error, InvalidSettings, Session,
    credential::Held,
    pool::Pool,
    renewals::Renewals,
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
    credential: Option<Arc<Held>>,
    /// Of a conversation.
    renewals: Option<Arc<Renewals>>,
    timeout: Duration,
    retries: bool,
}

impl Client {
    pub(crate) fn new(pool: Pool) -> Self {
        Self {
            pool: Arc::new(pool),
            credential: None,
            renewals: None,
            timeout: DEFAULT_TIMEOUT,
            retries: true,
        }
    }

    /// This client with another credential: a host key or a session's token.
    ///
    /// # Errors
    ///
    /// It is empty, or has anything but visible ASCII characters.
    pub fn with_credential(&self, credential: impl AsRef<str>) -> Result<Self, InvalidSettings> {
        Ok(self.holding(Arc::new(Held::new(credential.as_ref())?)))
    }

    fn holding(&self, held: Arc<Held>) -> Self {
        Self { credential: Some(held), renewals: None, ..self.clone() }
    }

    pub(crate) fn renewed_by(&self, renewals: Arc<Renewals>) -> Self {
        Self { renewals: Some(renewals), ..self.clone() }
    }

    /// Open a session that goes on for as long as its conversation does. With an empty id, the conversation is new.
    ///
    /// # Errors
    ///
    /// The call failed: see [`Client::open_session`].
    pub async fn conversation(
        &self,
        agent_id: impl Into<String>,
        conversation_id: impl Into<String>,
    ) -> Result<Conversation, Error> {
        let (agent_id, conversation_id) = (agent_id.into(), conversation_id.into());
        self.conversation_of(v1::OpenSessionRequest { agent_id, conversation_id, ..Default::default() }).await
    }

    /// The same with all that a session is opened with. The *ttl* is that of each renewal.
    ///
    /// # Errors
    ///
    /// The call failed: see [`Client::open_session`].
    pub async fn conversation_of(&self, request: v1::OpenSessionRequest) -> Result<Conversation, Error> {
        let begun = Instant::now();
        Ok(Conversation::new(self, &self.open_session(request).await?, begun))
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
        match Held::new(&token).map(Arc::new) {
            Ok(held) => Ok(Session::new(self.holding(held.clone()), held, session.unwrap_or_default())),
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
        let mut before = None;
        loop {
            let attempt = timeout_at(deadline, self.authorized(&message, &call, deadline)).await;
            let Failed { error, may_have_begun } = match attempt {
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(failed)) if !failed.error.is_late_here() => failed,
                _ => return Err(Error::deadline_exceeded(before.as_ref())),
            };
            let again = self.retries && error.may_pass() && (repeatable || !may_have_begun);
            let pause = pauses.next().unwrap_or_default();
            let pause = pause.saturating_add(error.retry_delay().unwrap_or_default());
            if !again || pause >= deadline - Instant::now() {
                return Err(error);
            }
            before = Some(error);
            sleep(pause).await;
        }
    }

    /// Send, and once more if the session had expired and could be renewed.
    async fn authorized<M, R, F>(
        &self,
        message: &M,
        call: &impl Fn(Channel, Request<M>) -> F,
        deadline: Instant,
    ) -> Result<R, Failed>
    where
        M: UnaryRequest,
        F: Future<Output = Result<Response<R>, Status>>,
    {
        let Some(renewals) = &self.renewals else {
            return self.send(message, call, deadline).await;
        };
        renewals.fresh().await;
        let refusal = match self.send(message, call, deadline).await {
            Ok(response) => return Ok(response),
            Err(refusal) => refusal,
        };
        match renewals.renewed(&refusal.error).await {
            Ok(true) => self.send(message, call, deadline).await,
            Ok(false) => Err(refusal),
            Err(error) => Err(Failed { error, may_have_begun: false }),
        }
    }

    async fn send<M, R, F>(
        &self,
        message: &M,
        call: &impl Fn(Channel, Request<M>) -> F,
        deadline: Instant,
    ) -> Result<R, Failed>
    where
        M: UnaryRequest,
        F: Future<Output = Result<Response<R>, Status>>,
    {
        let taken = self.pool.take();
        let came = call(taken.channel(), self.request(message.clone(), deadline)).await;
        self.pool.result(came).await.map_err(|error| Failed {
            may_have_begun: !error.never_began() && error.reason_name().as_deref() != Some(Error::EXPIRED),
            error,
        })
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
        let attempt = async {
            if let Some(renewals) = &self.renewals {
                renewals.fresh().await;
            }
            let taken = self.pool.take();
            let came = call(taken.channel(), self.request(messages, deadline)).await;
            self.pool.result(came).await
        };
        timeout_at(deadline, attempt).await.unwrap_or_else(|_| Err(Error::deadline_exceeded(None)))
    }

    fn request<T>(&self, message: T, deadline: Instant) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(deadline - Instant::now());
        if let Some(held) = &self.credential {
            request.metadata_mut().insert("authorization", held.authorization());
        }
        request
    }
}

/// How an attempt failed, and whether the server may have begun the call.
struct Failed {
    error: Error,
    may_have_begun: bool,
}
