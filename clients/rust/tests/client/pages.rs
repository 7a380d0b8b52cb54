//! Lists that come in pages, and that a raise of the taint overtakes.

use std::sync::Mutex;

use crate::fake::{Answer, Call, FakeServer, message};
use muniment::{
    ClientBuilder, List,
    v1::{ErrorReason, ListBlockConsumersResponse, ListMemoriesRequest, ListMemoriesResponse, Memory},
};
use tokio_stream::StreamExt;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// A list of keys, one on each page. Its tokens are worth nothing after the next raise, of which the first comes
/// after the first page.
pub struct PagedList {
    keys: Vec<String>,
    /// The taint, and how often it will rise yet.
    taint: Mutex<(usize, usize)>,
}

impl PagedList {
    pub fn new(keys: &[&str], raises: usize) -> Self {
        Self { keys: keys.iter().map(|key| (*key).to_owned()).collect(), taint: Mutex::new((0, raises)) }
    }

    pub fn list(&self, call: &Call) -> Answer {
        let (taint, raises) = &mut *self.taint.lock().unwrap();
        let request = call.messages::<ListMemoriesRequest>().remove(0);
        let (issued, index) = match request.page_token.split_once('.') {
            Some((issued, index)) => (issued.parse().unwrap(), index.parse().unwrap()),
            None => (*taint, 0),
        };
        if issued != *taint {
            return taint_changed();
        }
        let memories = vec![Memory { key: self.keys[index].clone(), ..Default::default() }];
        let more = index + 1 < self.keys.len();
        let next_page_token = if more { format!("{taint}.{}", index + 1) } else { String::new() };
        if *raises > 0 {
            (*taint, *raises) = (*taint + 1, *raises - 1);
        }
        message(ListMemoriesResponse { memories, next_page_token, ..Default::default() })
    }
}

fn taint_changed() -> Answer {
    let details = ErrorDetails::with_error_info("TAINT_CHANGED", "muniment.v1", []);
    Answer::Error(Status::with_error_details(Code::Aborted, "the taint was raised meanwhile", details))
}

async fn served(raises: usize) -> (FakeServer, List<Memory>) {
    let paged = PagedList::new(&["a", "b", "c"], raises);
    let server = FakeServer::start(move |call, _| paged.list(call)).await;
    let session = ClientBuilder::new(&server.address).credential("ms_1").connect().unwrap();
    let list = session.all_memories(ListMemoriesRequest { tag: "taste".into(), ..Default::default() });
    (server, list)
}

fn keys(memories: &[Memory]) -> Vec<&str> {
    memories.iter().map(|memory| memory.key.as_str()).collect()
}

#[tokio::test]
async fn a_list_goes_on_to_its_last_page_with_the_same_filter() {
    let (server, list) = served(0).await;

    assert_eq!(keys(&list.into_vec().await.unwrap()), ["a", "b", "c"]);

    let requests = server.calls().into_iter().map(|call| call.messages::<ListMemoriesRequest>().remove(0));
    let sent: Vec<_> = requests.map(|request| (request.tag, request.page_token)).collect();
    assert_eq!(sent, ["", "0.1", "0.2"].map(|token| ("taste".to_owned(), token.to_owned())));
}

#[tokio::test]
async fn pages_are_requested_when_they_are_needed() {
    let (server, mut list) = served(0).await;
    assert_eq!(server.calls().len(), 0);

    list.next().await.unwrap().unwrap();

    assert_eq!(server.calls().len(), 1);
}

#[tokio::test]
async fn a_list_is_a_stream() {
    let (_server, list) = served(0).await;

    let memories: Vec<_> = list.map(Result::unwrap).collect().await;

    assert_eq!(keys(&memories), ["a", "b", "c"]);
}

#[tokio::test]
async fn ids_are_listed_too() {
    let server = FakeServer::start(|_, _| {
        message(ListBlockConsumersResponse { agent_ids: vec!["ada".into()], ..Default::default() })
    })
    .await;
    let host = ClientBuilder::new(&server.address).credential("mk_1").connect().unwrap();

    let consumers = host.all_block_consumers(Default::default()).into_vec().await.unwrap();

    assert_eq!(consumers, ["ada"]);
}

#[tokio::test]
async fn a_list_that_a_raise_overtakes_ends_with_the_error() {
    let (_server, list) = served(1).await;
    let mut list = list.restart_on_taint_change();

    assert_eq!(list.next().await.unwrap().unwrap().key, "a");
    let error = list.next().await.unwrap().unwrap_err();

    assert_eq!(error.reason(), Some(ErrorReason::TaintChanged));
    assert!(list.next().await.is_none());
}

#[tokio::test]
async fn a_whole_list_fails_or_begins_anew() {
    let (_server, list) = served(1).await;
    let error = list.into_vec().await.unwrap_err();
    assert_eq!(error.reason(), Some(ErrorReason::TaintChanged));

    for raises in [0, 1, 4] {
        let (_server, list) = served(raises).await;
        let memories = list.restart_on_taint_change().into_vec().await.unwrap();
        assert_eq!(keys(&memories), ["a", "b", "c"]);
    }
}

#[tokio::test]
async fn a_whole_list_begins_anew_four_times_at_most() {
    let (server, list) = served(1000).await;

    let error = list.restart_on_taint_change().into_vec().await.unwrap_err();

    assert_eq!(error.reason(), Some(ErrorReason::TaintChanged));
    assert_eq!(server.calls().len(), 10);
}
