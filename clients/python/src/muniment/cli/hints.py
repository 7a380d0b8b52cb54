"""What a command prints about an error from the server, or about a failed connection, and what to do next."""

from __future__ import annotations

import muniment
from muniment._shown import shown
from muniment.retries import NOT_RESOLVED

_FORMS = {
    "language": "a language is a code such as en or pt-BR",
    "key": "a key has 1 to 256 characters",
    "query": "a query has 1 to 1,024 characters",
    "label": "a label has 1 to 64 letters, digits, _ . and -",
    "tags": "an item has at most 32 tags, of 1 to 64 characters",
    "thread": "a thread has at most 256 characters",
    "author": "an author has at most 256 characters",
    "reason": "a reason has at most 200 characters",
    "content": "only a block may be empty; a memory has at most 128 KiB, a passage 256, a note or block 64",
}
"""The rule of the contract for each field, in words."""
_MISMATCHES = {
    "tls_expected": "give --tls, or --tls-ca FILE if the authority is your own (MUNIMENT_TLS_CA)",
    "no_tls": "omit --tls and --tls-ca, and unset MUNIMENT_TLS_CA; or give the server a certificate: muniment serve "
    "--tls-cert FILE --tls-key FILE",
    "unknown_authority": "name the file of its authority: --tls-ca FILE (MUNIMENT_TLS_CA)",
    "other_name": "connect by a name or address that is in the certificate: MUNIMENT_ADDRESS, or --address",
    "certificate_invalid": "give the server another one: muniment serve --tls-cert FILE --tls-key FILE",
    "certificate_expected": "give --tls-cert FILE and --tls-key FILE",
}
"""What to do about each kind of TLS mismatch."""
CREATE_HOST_KEY = "muniment host-key create --tenant NAME --ceiling LEVEL"
OPEN_SESSION = "muniment session open AGENT --taint LEVEL"
SESSION_ENDED = (
    "MUNIMENT_TOKEN is not the token of an open session here: it is incomplete, or of another server, or the session "
    f"was closed or reset, or has expired, or its tenant is frozen. Ask the host for a new one: {OPEN_SESSION}"
)
"""What to do if a session's token is refused. The server does not say why."""
SESSION_EXPIRED = "ask the host to open it again: muniment session open AGENT --conversation ID"
"""What to do if the session of a token has expired."""
_HINTS: dict[type[muniment.MunimentError], str] = {
    muniment.CredentialExpired: f"ask the operator for another, or create one: {CREATE_HOST_KEY}",
    muniment.Unauthenticated: "the host key is not valid, or its tenant is frozen: ask the operator, or create "
    f"another: {CREATE_HOST_KEY}",
    muniment.PrincipalNotAllowed: "items need a session; agents, sessions, sharing, releases and the audit log a host "
    "key (MUNIMENT_HOST_KEY) that was created without --only and --integrity, or with --only for this",
    muniment.SessionReadOnly: "use a session that was opened without --read-only: muniment session open",
    muniment.CeilingExceeded: "stay at or below the key's ceiling, or use a key with a higher one",
    muniment.IntegrityExceeded: "begin another conversation, without --integrity: --conversation ANOTHER-ID; or use a "
    "trusted key: muniment host-key list",
    muniment.AgentAboveCeiling: "use a host key that reaches the agent's ceiling: muniment host-key list",
    muniment.AgentHeld: "an operator ends it: muniment hold remove NAME --tenant TENANT",
    muniment.ConversationCeilingExceeded: "begin another with this key: --conversation ANOTHER-ID",
    muniment.AgentCeilingExceeded: "stay at or below the agent's ceiling: muniment agent get NAME",
    muniment.AgentNotFound: "list the agents: muniment agent list; create one: muniment agent create NAME; or let keys "
    "of this ceiling know it, with a key that reaches it: muniment agent update NAME --known-from LEVEL",
    muniment.SessionNotFound: "list the open ones: muniment session list AGENT",
    muniment.MemoryNotFound: "list what this session sees: muniment memory list",
    muniment.NoteNotFound: "list what this session sees: muniment note list, or with --tier user",
    muniment.BlockNotFound: "list what this session sees: muniment block list",
    muniment.PassageNotFound: "list what this session sees: muniment passage list",
    muniment.SharedBlockNotFound: "share it first: muniment block share OWNER LABEL",
    muniment.BlockNotAttached: "list who reads it: muniment block consumers OWNER LABEL",
    muniment.AgentExists: "choose another id; list the agents: muniment agent list (those that the key knows)",
    muniment.NoteExists: "omit --id, or give the content and tier of the existing note",
    muniment.BlockExists: "list its readers: muniment block consumers OWNER LABEL; if it has text, omit CONTENT",
    muniment.PassageExists: "omit --id, or give the content of the existing passage",
    muniment.ItemExists: "keep the one that was saved there since, or delete it first",
    muniment.ReleaseRightMissing: "ask the operator for a key with the right: muniment host-key create --may endorse, "
    "--may declassify",
    muniment.ReleaseNotFound: "list them: muniment release list --all, with a key that reaches the agent's ceiling",
    muniment.ReleaseNotOpen: "show its state: muniment release show ID",
    muniment.ReleaseExpired: "ask for another: muniment release request, with a longer --ttl",
    muniment.ReleaseOwnRequest: "approve it with another host key that has the right",
    muniment.ReleaseHashMismatch: "review the text again: muniment release show ID",
    muniment.ReleaseSourceChanged: "read the item again at the level and integrity that --from names, and ask for "
    "another: muniment release request",
    muniment.TierDisabled: "a host can enable it: muniment agent update NAME --notes, or --profile",
    muniment.BudgetExceeded: "shorten or delete a note first: muniment note list",
    muniment.TextNotFound: "show the block: muniment block get LABEL",
    muniment.TextNotUnique: "include more of its context",
    muniment.LineOutOfRange: "show the lines: muniment block get LABEL; 0 is before the first",
    muniment.BlockTooLarge: "shorten it first: muniment block replace, or update",
    muniment.PromptTooLarge: "render a part of it: --section; or shorten large blocks: muniment block list",
    muniment.ConversationTainted: "omit --taint, or restart the conversation: muniment session reset",
    muniment.WriteLevelMismatch: "a session writes only at its own level: use one at the item's (--agent, --taint)",
    muniment.EtagStale: "read it again, then write with its etag",
    muniment.TaintChanged: "start again",
    muniment.Overloaded: "try again in a moment",
    muniment.RateLimited: "try again in a second, or have a host raise the limit: muniment agent update --help",
    muniment.QuotaExceeded: (
        "show what is stored: muniment agent get NAME; then delete what is not needed, or have a host raise the limit: "
        "muniment agent update NAME --max-items, --max-bytes or --max-revisions"
    ),
    muniment.StorageFull: "an operator can make room: see muniment doctor",
    muniment.Unavailable: "is it running? start it: muniment serve --dev (or make run). Is it at another address? set "
    "MUNIMENT_ADDRESS, or give --address",
    muniment.DeadlineExceeded: "try again; a write may have been executed",
    muniment.MethodUnknown: "the server is older than this command: upgrade it",
    muniment.InternalError: "the server's log has the details",
}


def message(error: muniment.MunimentError) -> str:
    """What is wrong. What to do is in the hint, by the names of options."""
    return f"UNAVAILABLE: {error.message}" if isinstance(error, muniment.TLSMismatch) else shown(error)


def hint_for(error: muniment.MunimentError) -> str:
    """What to do next. Empty if that is not known."""
    if isinstance(error, muniment.InvalidArgument):
        fields = (each.field.partition("[")[0] for each in error.violations)
        forms = {_FORMS[field] for field in fields if field in _FORMS}
        return "; ".join([*sorted(forms), "see --help"])
    if isinstance(error, muniment.ConversationTainted) and error.taint is not None:
        return f"it is at {error.taint.name}: {_HINTS[muniment.ConversationTainted]}"
    if isinstance(error, muniment.TLSMismatch):
        return _MISMATCHES[error.mismatch]
    if isinstance(error, muniment.Unavailable) and error.message.startswith(NOT_RESOLVED):
        return "there is no such name: correct MUNIMENT_ADDRESS, or --address"
    if isinstance(error, muniment.Unavailable) and error.reason:
        return "it is running, but cannot answer now: try again; its operator can look: muniment doctor"
    return next((hint for kind, hint in _HINTS.items() if isinstance(error, kind)), "")
