//! Which calls may be made again, and when.

use std::{any::Any, iter::successors, time::Duration};

use crate::v1::{
    AddNoteRequest, EditNotesRequest, SaveMemoriesRequest, StorePassageRequest, note_edit::Edit,
};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The pause after each attempt. They double, less up to half by chance, so that clients do not come back all
/// at once.
///
/// The longest bounds what the clients of a server that is away or overloaded send: at most one attempt per
/// call in one to two seconds.
pub(crate) fn pauses() -> impl Iterator<Item = Duration> + Send {
    let longest = successors(Some(FIRST_PAUSE), |pause| Some((*pause * 2).min(LONGEST_PAUSE)));
    longest.map(|pause| pause.mul_f64(1.0 - fastrand::f64() / 2.0))
}

/// The request of a method that takes one message. Each method has a request of its own.
pub(crate) trait UnaryRequest: Any + Clone {
    /// Whether the contract lets a client send it again: the `may_be_repeated` of the method's policy.
    const MAY_BE_REPEATED: bool;

    /// The version that is to be changed, if just that one is. Empty: any.
    fn etag(&self) -> &str {
        ""
    }
}

/// Whether *request* may be sent again when nobody knows what became of it.
///
/// With an etag never: if the first attempt did arrive, the second is stale.
pub(crate) fn may_repeat<R: UnaryRequest>(request: &R) -> bool {
    R::MAY_BE_REPEATED && request.etag().is_empty() && does_the_same_again(request)
}

/// Memories are saved again if none has an etag. An item with an id from the caller is added only once. The same holds
/// for several notes, if all edits add one. With other edits, a retry could add a note that the first attempt did not,
/// because a later edit changed a duplicate.
fn does_the_same_again(request: &dyn Any) -> bool {
    if let Some(save) = request.downcast_ref::<SaveMemoriesRequest>() {
        return save.memories.iter().all(|memory| memory.etag.is_empty());
    }
    if let Some(note) = request.downcast_ref::<AddNoteRequest>() {
        return !note.note_id.is_empty();
    }
    if let Some(passage) = request.downcast_ref::<StorePassageRequest>() {
        return !passage.passage_id.is_empty();
    }
    let Some(edits) = request.downcast_ref::<EditNotesRequest>() else {
        return true;
    };
    let mut each = edits.edits.iter().map(|edit| edit.edit.as_ref());
    edits.validate_only || each.all(|edit| matches!(edit, Some(Edit::Add(note)) if !note.note_id.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::{self, AddNoteEdit, DeleteNoteEdit, NoteEdit};

    #[test]
    fn reads_may_be_repeated() {
        assert!(may_repeat(&v1::GetMemoryRequest::default()));
        assert!(may_repeat(&v1::RenderPromptRequest::default()));
    }

    #[test]
    fn idempotent_writes_may_be_repeated_unless_an_etag_makes_them_stale() {
        let etag = String::from("1");
        assert!(may_repeat(&v1::SaveMemoryRequest::default()));
        assert!(may_repeat(&v1::RaiseTaintRequest::default()));
        let stale = v1::SaveMemoryRequest { etag, ..Default::default() };
        let many = |memories: &[_]| SaveMemoriesRequest { memories: memories.to_vec(), ..Default::default() };
        assert!(may_repeat(&many(&[v1::SaveMemoryRequest::default()])));
        assert!(!may_repeat(&many(&[v1::SaveMemoryRequest::default(), stale.clone()])));
        assert!(!may_repeat(&stale));
    }

    #[test]
    fn what_would_answer_otherwise_the_second_time_is_not_repeated() {
        assert!(!may_repeat(&v1::DeleteMemoryRequest::default()));
        assert!(!may_repeat(&v1::CloseSessionRequest::default()));
    }

    #[test]
    fn what_would_do_more_the_second_time_is_not_repeated() {
        assert!(!may_repeat(&v1::CreateAgentRequest::default()));
        assert!(!may_repeat(&v1::OpenSessionRequest::default()));
        assert!(!may_repeat(&v1::EditBlockRequest::default()));
        assert!(!may_repeat(&v1::DeleteMemoriesRequest::default()));
    }

    #[test]
    fn what_is_added_under_an_id_may_be_repeated() {
        let id = String::from("6cdd7d4d-5f3b-4be0-8b0b-2ed1a5d2f0a1");
        assert!(!may_repeat(&v1::AddNoteRequest::default()));
        assert!(may_repeat(&v1::AddNoteRequest { note_id: id.clone(), ..Default::default() }));
        assert!(!may_repeat(&v1::StorePassageRequest::default()));
        assert!(may_repeat(&v1::StorePassageRequest { passage_id: id.clone(), ..Default::default() }));
    }

    #[test]
    fn edits_may_be_repeated_if_each_adds_under_an_id_or_none_is_made() {
        let edits = |edits: &[Edit], validate_only| EditNotesRequest {
            edits: edits.iter().map(|edit| NoteEdit { edit: Some(edit.clone()) }).collect(),
            validate_only,
            ..Default::default()
        };
        let nameless = Edit::Add(AddNoteEdit::default());
        let add = Edit::Add(AddNoteEdit { note_id: "1".into(), ..Default::default() });
        let delete = Edit::Delete(DeleteNoteEdit { note_id: "2".into() });
        assert!(may_repeat(&edits(&[add.clone(), add.clone()], false)));
        assert!(!may_repeat(&edits(&[add.clone(), nameless], false)));
        assert!(!may_repeat(&edits(&[add.clone(), delete.clone()], false)));
        assert!(may_repeat(&edits(&[add, delete], true)));
    }

    #[test]
    fn pauses_grow_up_to_the_longest() {
        for (pause, most) in pauses().zip([100, 200, 400, 800, 1600, 2000, 2000]) {
            let most = Duration::from_millis(most);
            assert!(most / 2 <= pause && pause <= most, "{pause:?}");
        }
    }
}
