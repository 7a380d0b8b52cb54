use std::{error::Error as StdError, fmt, iter::successors, time::Duration};

use prost::{Message, Name};
use prost_types::Any;
use tonic::{Code, ConnectError, Status, TimeoutExpired};
use tonic_types::{ErrorInfo, FieldViolation, StatusExt, pb};

use crate::{
    mistakes::Mistake,
    v1::{BudgetExceeded, ConversationTainted, ErrorReason, ImportProgress},
};

const DOMAIN: &str = "muniment.v1";

/// The trailer with the id of the call.
const REQUEST_ID: &str = "request-id";

/// A call that failed.
///
/// Neither `Debug` nor `Display` shows what is stored, though details may quote it.
pub struct Error {
    code: Code,
    status: Status,
    /// What is said instead of the status's own message.
    mistake: Option<Mistake>,
}

impl Error {
    /// Why a call was refused whose credential's time has passed.
    pub(crate) const EXPIRED: &str = "CREDENTIAL_EXPIRED";

    /// The canonical code.
    ///
    /// A connection that failed is [`Code::Unavailable`], whatever it was that failed, and so is a call that the
    /// server broke off.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// The reason, by which to act. None: the answer is not from Muniment itself, or this client does not
    /// know the reason yet, and [`Error::reason_name`] has it.
    #[must_use]
    pub fn reason(&self) -> Option<ErrorReason> {
        ErrorReason::from_str_name(&format!("ERROR_REASON_{}", self.reason_name()?))
    }

    /// The reason as the server names it: `ETAG_STALE`. None: the answer is not from Muniment itself.
    #[must_use]
    pub fn reason_name(&self) -> Option<String> {
        Some(self.error_info()?.reason)
    }

    /// For people; may change.
    #[must_use]
    pub fn message(&self) -> &str {
        self.mistake.as_ref().map_or_else(|| self.status.message(), |mistake| &mistake.message)
    }

    /// The fields of the request that break rules of the contract, each with its rule.
    #[must_use]
    pub fn field_violations(&self) -> Vec<FieldViolation> {
        let request = self.status.get_details_bad_request();
        request.map_or_else(Vec::new, |request| request.field_violations)
    }

    /// Which notes take the room, and by how much it is too little.
    #[must_use]
    pub fn budget_exceeded(&self) -> Option<BudgetExceeded> {
        self.detail()
    }

    /// The taint of the conversation, which is above that of the session to open.
    #[must_use]
    pub fn conversation_tainted(&self) -> Option<ConversationTainted> {
        self.detail()
    }

    /// How many passages of an import are stored all the same, counted from the first.
    #[must_use]
    pub fn import_progress(&self) -> Option<ImportProgress> {
        self.detail()
    }

    /// After which time the server asks to be tried again.
    #[must_use]
    pub fn retry_delay(&self) -> Option<Duration> {
        self.status.get_details_retry_info()?.retry_delay
    }

    /// What identifies the call in the server's log; after retries, the last attempt. None: no server answered.
    #[must_use]
    pub fn request_id(&self) -> Option<String> {
        let sent = self.status.metadata().get(REQUEST_ID).and_then(|id| id.to_str().ok());
        // A server of version 0.1.0 names faults alone.
        sent.map(str::to_owned).or_else(|| self.incident())
    }

    /// Of a fault: the request id, as the status itself has it.
    #[must_use]
    pub fn incident(&self) -> Option<String> {
        self.error_info()?.metadata.remove("incident")
    }

    /// All details, as they came.
    #[must_use]
    pub fn details(&self) -> Vec<Any> {
        let status = pb::Status::decode(self.status.details());
        status.map_or_else(|_| Vec::new(), |status| status.details)
    }

    /// The error of a call that ended with *status*, or with the *mistake* that explains it.
    pub(crate) fn new(status: Status, mistake: Option<Mistake>) -> Self {
        if sources(&status).any(<dyn StdError>::is::<TimeoutExpired>) {
            return Self::deadline_exceeded(None);
        }
        // A status from the server has no source. One that tonic makes of a failed connection has a source, and any
        // code. Our callers cancel a call by dropping it, so CANCELLED comes from a server that stops.
        let broken_off = status.source().is_some() || status.code() == Code::Cancelled;
        let code = if broken_off { Code::Unavailable } else { status.code() };
        Self { code, status, mistake }
    }

    /// The deadline of the call passed here, after an attempt that failed in another way, if there was one.
    pub(crate) fn deadline_exceeded(before: Option<&Self>) -> Self {
        let reason =
            before.map(|error| format!(", after an attempt that failed: {error}")).unwrap_or_default();
        let status = Status::deadline_exceeded(format!("the deadline passed before the answer came{reason}"));
        Self { code: status.code(), status, mistake: None }
    }

    /// Whether the deadline passed here, before the server answered.
    pub(crate) fn is_late_here(&self) -> bool {
        self.code == Code::DeadlineExceeded && self.reason_name().is_none()
    }

    /// Whether the same call may succeed a little later.
    pub(crate) fn may_pass(&self) -> bool {
        match self.code {
            Code::Unavailable => !self.mistake.as_ref().is_some_and(|mistake| mistake.lasts),
            Code::ResourceExhausted => self.retry_delay().is_some(),
            _ => false,
        }
    }

    /// Whether the call provably never began: no connection could be made, or one that the server was closing,
    /// because of its age or because it stops itself, refused what came too late.
    pub(crate) fn never_began(&self) -> bool {
        sources(&self.status).any(|source| {
            if source.is::<ConnectError>() {
                return true;
            }
            // In HTTP/2, hyper cancels only what it has not written yet.
            let unsent = source.downcast_ref().is_some_and(hyper::Error::is_canceled);
            unsent || source.downcast_ref().is_some_and(is_refused)
        })
    }

    /// What the details say in few words, and never what is stored.
    fn facts(&self) -> Vec<String> {
        let violations = self.field_violations().into_iter();
        let mut facts: Vec<_> =
            violations.map(|broken| format!("{}: {}", broken.field, broken.description)).collect();
        if let Some(full) = self.budget_exceeded() {
            let limit = full.usage.unwrap_or_default().limit_chars;
            facts.push(format!(
                "over by {} characters: {} of {limit}",
                full.over_by_chars, full.would_be_chars
            ));
        }
        if let Some(tainted) = self.conversation_tainted() {
            let level = tainted.taint().as_str_name().trim_start_matches("CLASSIFICATION_");
            facts.push(format!("the taint is {level}"));
        }
        if let Some(done) = self.import_progress() {
            let (stored, existing) = (done.stored_count, done.existing_count);
            facts.push(format!("{stored} passages stored, {existing} already there"));
        }
        if let Some(quota) = self.error_info().and_then(|mut info| info.metadata.remove("quota")) {
            facts.push(format!("quota: {quota}"));
        }
        if let Some(delay) = self.retry_delay() {
            facts.push(format!("retry after {delay:?}"));
        }
        facts
    }

    fn error_info(&self) -> Option<ErrorInfo> {
        let info = self.status.get_details_error_info()?;
        (info.domain == DOMAIN).then_some(info)
    }

    fn detail<M: Message + Name + Default>(&self) -> Option<M> {
        self.details().iter().find_map(|any| any.to_msg().ok())
    }
}

/// Whether a stream was above the last one that the server takes, or refused by itself.
fn is_refused(error: &h2::Error) -> bool {
    let refusal = if error.is_go_away() { h2::Reason::NO_ERROR } else { h2::Reason::REFUSED_STREAM };
    error.is_remote() && error.reason() == Some(refusal)
}

pub(crate) fn sources(status: &Status) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    successors(status.source(), |&error| error.source())
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason_name() {
            Some(reason) => f.write_str(&reason)?,
            None => write!(f, "{:?}", self.code)?,
        }
        write!(f, ": {}", self.message())?;
        let facts = self.facts();
        if !facts.is_empty() {
            write!(f, " ({})", facts.join("; "))?;
        }
        self.request_id().map_or(Ok(()), |id| write!(f, " (request {id})"))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("code", &self.code)
            .field("reason", &self.reason_name())
            .field("message", &self.message())
            .field("request_id", &self.request_id())
            .field("source", &self.source())
            .finish_non_exhaustive()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.status.source()
    }
}
