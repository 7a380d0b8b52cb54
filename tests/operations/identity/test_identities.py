"""What an identity may do, from `muniment identity add` to its removal."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from pathlib import Path

import grpc
import pytest

from muniment.v1.classification_pb2 import Classification
from tests.operations.identity import forge
from tests.operations.identity.conftest import code_of
from tests.support.commands import run, run_process, wait_until
from tests.support.services import reason_of

OK, REFUSED, DENIED = grpc.StatusCode.OK, grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED


def _add(identity, subject, *options, keys, issuer=forge.ISSUER, tenant="development", ceiling="internal"):
    named = ("--issuer", issuer, "--audience", forge.AUDIENCE, "--subject", subject, "--keys", str(keys))
    return identity("add", *named, "--tenant", tenant, "--ceiling", ceiling, "--json", *options)


def _added(identity, subject, *options, **named) -> str:
    done = _add(identity, subject, *options, **named)
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["identity_id"])


def _is_known(caller):
    return lambda: code_of(caller) is not REFUSED


@pytest.fixture
def by_oidc(identity, issuer, as_caller):
    """The id of an identity at the provider, and the token that it has issued."""
    made = _added(identity, "runtime", keys=issuer.keys, issuer=issuer.url, ceiling="restricted")
    token = issuer.token("runtime", forge.AUDIENCE)
    wait_until(_is_known(as_caller(token)), "the identity is known")
    yield made, token
    identity("remove", made, "--close-sessions")


def test_a_token_of_an_openid_provider_is_accepted(by_oidc, as_caller, issuer):
    _, token = by_oidc

    assert code_of(as_caller(token)) is OK
    assert code_of(as_caller(issuer.token("another", forge.AUDIENCE))) is REFUSED
    assert code_of(as_caller(issuer.token("runtime", "another"))) is REFUSED


def test_after_its_removal_the_next_call_fails(by_oidc, identity, as_caller):
    made, token = by_oidc
    host = as_caller(token)
    session = host.session(host.open_session(agent_id="alice", taint=Classification.CLASSIFICATION_PUBLIC))

    done = identity("remove", made, "--close-sessions")

    assert done.returncode == 0, done.stderr
    assert code_of(host) is REFUSED
    assert session.observe("ListMemories").code is REFUSED


def test_while_the_issuer_is_away_its_tokens_count_and_no_others(by_oidc, as_caller, issuer, server):
    """Also in workers, and in a refresher, that were started meanwhile."""
    _, token = by_oidc
    strange = forge.token({**forge.claims(), "iss": issuer.url, "sub": "runtime"}, kid="rsa")
    issuer.stop()
    try:
        before = set(server.children())
        for pid, command in server.children().items():
            if "muniment_server.runtime.worker" in command or "muniment_identity" in command:
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: len(set(server.children()) - before) == 2, "they are started again")

        wait_until(lambda: _code_of_reachable(as_caller(token)) is OK, "calls are served")
        assert code_of(as_caller(strange)) is REFUSED
    finally:
        issuer.start()


def _code_of_reachable(caller):
    code = code_of(caller)
    return None if code is grpc.StatusCode.UNAVAILABLE else code


def test_its_row_bounds_what_it_may_do(identity, keys_file, as_caller, server):
    run(server.folder, "agent", "create", "low", "--ceiling", "internal")
    made = _added(identity, "opener", "--only", "sessions", "--name", "openers", keys=keys_file)
    opener = as_caller(forge.token(forge.claims(sub="opener")))
    wait_until(_is_known(opener), "the identity is known")

    def opening(level):
        return opener.observe("OpenSession", agent_id="low", taint=level).code

    assert opening(Classification.CLASSIFICATION_INTERNAL) is OK
    assert opening(Classification.CLASSIFICATION_CONFIDENTIAL) is DENIED
    assert code_of(opener) is DENIED
    audit = run(server.folder, "audit", "list", "--tenant", "development", "--wide")
    assert made in audit.stdout


def test_it_may_be_for_untrusted_sessions_only(identity, keys_file, as_caller, server):
    run(server.folder, "agent", "create", "public-channel", "--ceiling", "internal")
    _added(identity, "bounded", "--integrity", "untrusted", keys=keys_file)
    bounded = as_caller(forge.token(forge.claims(sub="bounded")))
    wait_until(_is_known(bounded), "the identity is known")

    opened = [bounded.observe("OpenSession", agent_id="public-channel", integrity=integrity) for integrity in (0, 1)]

    assert [reason_of(each) for each in opened] == ["", "INTEGRITY_EXCEEDED"]
    assert code_of(bounded) is DENIED


def test_two_identities_release_an_item(identity, keys_file, as_caller, server):
    """One asks, another approves; one without the right does neither."""
    run(server.folder, "agent", "create", "released", "--ceiling", "internal")
    run(server.folder, "memory", "save", "fact", "it is blue", "--agent", "released", "--taint", "public")
    rights = {"asks": ("--may", "endorse"), "approves": ("--may", "endorse"), "lacks": ()}
    made = {name: _added(identity, name, "--only", "releases", *may, keys=keys_file) for name, may in rights.items()}
    asks, approves, lacks = (as_caller(forge.token(forge.claims(sub=name))) for name in rights)
    for each in (asks, approves, lacks):
        wait_until(_is_known(each), "the identity is known")
    content_hash = hashlib.sha256(b"it is blue").hexdigest()
    wanted = {
        "agent_id": "released", "kind": 1, "name": "fact", "content_sha256": content_hash, "source_classification": 1,
        "source_integrity": 0, "classification": 1, "integrity": 1,
    }  # fmt: skip

    asked = asks.request_release(**wanted)
    approval = {"release_id": asked.release.release_id, "content_sha256": content_hash}
    refused = [lacks.observe("RequestRelease", **wanted), lacks.observe("ApproveRelease", **approval)]
    released = approves.approve_release(**approval).release

    assert list(map(reason_of, refused)) == ["RELEASE_RIGHT_MISSING"] * 2
    assert released.requester_host_key_id == made["asks"]
    assert list(released.approver_host_key_ids) == [made["approves"]]
    assert released.released_item_id
    listed = {row["identity_id"]: row for row in map(json.loads, identity("list", "--json").stdout.splitlines())}
    assert [listed[made[name]]["may_endorse"] for name in rights] == [True, True, False]


def test_an_untrusted_identity_has_no_right_at_the_desk(identity, keys_file):
    done = _add(identity, "poisoned", "--integrity", "untrusted", "--may", "endorse", keys=keys_file)

    assert done.returncode == 2
    assert "leave out --may" in done.stderr


def test_a_freeze_of_its_tenant_stops_it(identity, keys_file, as_caller, server):
    _added(identity, "frozen", keys=keys_file, tenant="cold")
    frozen = as_caller(forge.token(forge.claims(sub="frozen")))
    wait_until(_is_known(frozen), "the identity is known")

    assert run(server.folder, "tenant", "freeze", "cold").returncode == 0
    assert code_of(frozen) is REFUSED
    assert run(server.folder, "tenant", "thaw", "cold").returncode == 0
    assert code_of(frozen) is OK


def test_a_jwt_svid_needs_no_issuer(identity, keys_file, as_caller):
    subject = "spiffe://prod.example/runtime"
    _added(identity, subject, keys=keys_file, issuer="spiffe://prod.example")
    svid = forge.claims(iss=None, iat=None, sub=subject)
    wait_until(_is_known(as_caller(forge.token(svid))), "the identity is known")

    assert code_of(as_caller(forge.token(svid, typ="JOSE"))) is OK
    assert code_of(as_caller(forge.token({**svid, "sub": "spiffe://prod.example/runtime/more"}))) is REFUSED
    assert code_of(as_caller(forge.token({**svid, "sub": "spiffe://other.example/runtime"}))) is REFUSED
    assert code_of(as_caller(forge.token({**svid, "aud": "another"}))) is REFUSED


def test_a_token_for_two_identities_stands_for_none(identity, keys_file, as_caller):
    """Otherwise it would depend on their order which rights it has."""
    named = ("--issuer", forge.ISSUER, "--subject", "both", "--keys", str(keys_file), "--tenant", "development")
    for audience, ceiling in (("one", "internal"), ("two", "restricted")):
        identity("add", *named, "--audience", audience, "--ceiling", ceiling)
    for audience in ("one", "two"):
        wait_until(_is_known(as_caller(forge.token(forge.claims(sub="both", aud=audience)))), "the identity is known")

    assert code_of(as_caller(forge.token(forge.claims(sub="both", aud=["one", "two"])))) is REFUSED


def test_a_key_that_the_issuer_withdraws_counts_no_longer(identity, root_folder, as_caller):
    path = root_folder / "rotated.json"
    forge.write_keys(path)
    _added(identity, "rotated", keys=path)
    said = forge.claims(sub="rotated")
    old, new = as_caller(forge.token(said)), as_caller(forge.token(said, key=forge.STRANGERS, kid="new"))
    wait_until(_is_known(old), "the identity is known")
    assert code_of(new) is REFUSED

    forge.write_keys(path, {"keys": [forge.rsa_jwk(forge.STRANGERS, kid="new")]})

    wait_until(_is_known(new), "the new key is known")
    assert code_of(old) is REFUSED


def test_a_host_key_counts_beside_identities(server, as_caller):
    development = json.loads((server.folder / ".muniment" / "development.json").read_text())

    assert code_of(as_caller(development["host_key"])) is OK


def test_only_its_account_may_read_the_file(server, chatbot):
    file = server.folder / ".muniment" / "state" / "identities.json"

    assert file.stat().st_mode & 0o777 == 0o600


def test_it_is_listed(identity, chatbot):
    rows = [json.loads(line) for line in identity("list", "--json").stdout.splitlines()]

    (row,) = (row for row in rows if row["identity_id"] == chatbot)
    assert (row["issuer"], row["subject"], row["tenant"]) == (forge.ISSUER, forge.SUBJECT, "development")


def test_it_is_no_host_key_to_be_listed(server, chatbot):
    assert chatbot not in run(server.folder, "host-key", "list", "--json").stdout


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"issuer": "http://login.example"}, "is not an issuer"),
        ({"issuer": "login.example"}, "is not an issuer"),
        ({"issuer": "spiffe://prod.example"}, "is not in the trust domain"),
        ({"issuer": "spiffe://", "subject": "spiffe:///x"}, "is not in the trust domain"),
        ({"issuer": "spiffe://prod.example", "subject": "spiffe://prod.example/a/../b"}, "is not in the trust domain"),
        ({"issuer": "spiffe://Prod.example", "subject": "spiffe://Prod.example/a"}, "is not in the trust domain"),
        ({"keys": "http://login.example/jwks"}, "give an https URL"),
        ({"keys": "HTTPS://login.example/jwks"}, "give an https URL"),
        ({"keys": "https:/login.example/jwks"}, "give an https URL"),
        ({"keys": "https://login.example:99999/jwks"}, "give an https URL"),
        ({"keys": "https://[login.example/jwks"}, "give an https URL"),
        ({"keys": "https://login.example/\x1b[2J"}, "give an https URL"),
        ({"keys": "https://a:b@login.example/jwks"}, "give an https URL"),
        ({"subject": "ｃｈａｔｂｏｔ"}, "printable ASCII"),
        ({"subject": ""}, "printable ASCII"),
        ({"subject": forge.SUBJECT, "tenant": "another"}, "is an identity of development already"),
    ],
)
@pytest.mark.usefixtures("chatbot")
def test_a_mistake_is_named(identity, keys_file, changed, message):
    done = _add(identity, **{"subject": "new", "keys": keys_file, **changed})

    assert done.returncode != 0
    assert message in done.stderr


def test_without_the_extra_it_says_what_to_install(root_folder):
    hidden = root_folder / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text("import sys; sys.modules['jwt'] = None")

    done = run_process(root_folder, "serve", "--identities", PYTHONPATH=str(hidden))

    assert done.returncode == 1
    assert "--identities needs PyJWT" in done.stderr
    assert not Path(root_folder, ".muniment").exists()
