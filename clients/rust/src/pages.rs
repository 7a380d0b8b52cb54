//! Lists that come in pages.

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
    vec,
};

use tonic::codegen::tokio_stream::Stream;

use crate::{Error, v1::ErrorReason};

/// How often a conversation can be raised: three times to a higher level, once to UNTRUSTED.
pub(crate) const MOST_RAISES: usize = 4;

type Page<T> = Result<(Vec<T>, String), Error>;
type Fetched<T> = Pin<Box<dyn Future<Output = Page<T>> + Send>>;

/// A list, page after page: a [`Stream`] of its items, which requests a page when it is needed.
///
/// An error is the last that comes. If a host raises the taint between two pages, the error is
/// `TAINT_CHANGED`, and the list is incomplete: what came may be shadowed now, and more may be visible.
#[must_use = "nothing is requested before the first item is"]
pub struct List<T> {
    first: String,
    fetch: Box<dyn Fn(String) -> Fetched<T> + Send>,
    restarts: usize,
    items: vec::IntoIter<T>,
    next: Option<Fetched<T>>,
}

impl<T> List<T> {
    /// The list whose pages *fetch* gets, beginning with that of the token *first*.
    pub(crate) fn new<F>(first: String, fetch: impl Fn(String) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Page<T>> + Send + 'static,
    {
        let fetch = move |token| Box::pin(fetch(token)) as Fetched<T>;
        let next = Some(fetch(first.clone()));
        Self { first, fetch: Box::new(fetch), restarts: 0, items: Vec::new().into_iter(), next }
    }

    /// The next item. None: there was an error, or there are no more.
    pub async fn next(&mut self) -> Option<Result<T, Error>> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Make [`List::into_vec`] read the list again from its start if the taint is raised between two pages.
    ///
    /// Items that come one by one are not affected: only you know what has become of those that you have.
    pub fn restart_on_taint_change(mut self) -> Self {
        self.restarts = MOST_RAISES;
        self
    }

    /// The whole list, all pages of it read at one taint.
    ///
    /// With [`List::restart_on_taint_change`] it begins anew at most four times. The result may then be
    /// classified higher than the taint was when the call began.
    ///
    /// # Errors
    ///
    /// A call failed. `TAINT_CHANGED`: a host raised the taint between two pages.
    pub async fn into_vec(mut self) -> Result<Vec<T>, Error> {
        loop {
            let read = self.rest().await;
            let raised = matches!(&read, Err(error) if error.reason() == Some(ErrorReason::TaintChanged));
            if !raised || self.restarts == 0 {
                return read;
            }
            self.restarts -= 1;
            self.next = Some((self.fetch)(self.first.clone()));
        }
    }

    async fn rest(&mut self) -> Result<Vec<T>, Error> {
        let mut items = Vec::new();
        while let Some(item) = self.next().await {
            items.push(item?);
        }
        Ok(items)
    }
}

impl<T> Stream for List<T> {
    type Item = Result<T, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(item) = self.items.next() {
                return Poll::Ready(Some(Ok(item)));
            }
            let Some(next) = &mut self.next else { return Poll::Ready(None) };
            let page = ready!(next.as_mut().poll(context));
            self.next = None;
            match page {
                Ok((items, token)) => {
                    self.items = items.into_iter();
                    self.next = (!token.is_empty()).then(|| (self.fetch)(token));
                }
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}

/// The list itself is never pinned. Each page is, in a box of its own.
impl<T> Unpin for List<T> {}

/// Shows no item.
impl<T> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("List").field("restarts", &self.restarts).finish_non_exhaustive()
    }
}
