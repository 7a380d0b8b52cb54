"""Hosts that call by a certificate with a SPIFFE id (X.509-SVID)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tests.operations.identity import forge
from tests.operations.identity.conftest import code_of
from tests.support.certificates import make
from tests.support.commands import Server, environment_in, run, wait_until
from tests.support.services import Caller

DOMAIN, SUBJECT = "spiffe://prod.example", "spiffe://prod.example/runtime"
OK, REFUSED = grpc.StatusCode.OK, grpc.StatusCode.UNAUTHENTICATED


def _general_name(uri: str) -> str:
    """Alternative names with *uri* alone, as openssl takes them byte for byte."""
    text = uri.encode()
    return bytes([0x30, len(text) + 2, 0x86, len(text), *text]).hex(":")


HOSTS = {
    "runtime": f"URI:{SUBJECT}",
    "another": f"URI:{DOMAIN}/another",
    "several": f"URI:{SUBJECT},URI:{DOMAIN}/another",
    "name": "DNS:prod.example",
    "beside": f"URI:{SUBJECT}/more",
    "upper": "URI:spiffe://prod.example/Runtime",
    "null": f"DER:{_general_name(f'{SUBJECT}{chr(0)}/more')}",
    "null at the end": f"DER:{_general_name(f'{SUBJECT}{chr(0)}')}",
    "umlaut": f"DER:{_general_name(f'{DOMAIN}/rüntime')}",
}


@pytest.fixture(scope="module")
def folder(root_folder: Path) -> Path:
    """A certificate authority, and the certificates of the server and of hosts."""
    folder = root_folder / "svids"
    folder.mkdir()
    make(folder, "authority", "-addext", "basicConstraints=critical,CA:TRUE")
    signed = ("-CA", "authority.pem", "-CAkey", "authority.key", "-addext", "basicConstraints=critical,CA:FALSE")
    for name, names in {"localhost": "IP:127.0.0.1", **HOSTS}.items():
        make(folder, name, "-addext", f"subjectAltName={names}", *signed)
    return folder


@pytest.fixture(scope="module")
def secure(root_folder, made_before, folder) -> Iterator[Server]:
    """A server that asks for certificates, and knows the host `runtime`."""
    served = root_folder / "secure"
    served.mkdir(mode=0o711)
    subprocess.run(["cp", "--archive", made_before, served / ".muniment"], check=True)
    tls = ("--tls-cert", "localhost.pem", "--tls-key", "localhost.key", "--tls-client-ca", "authority.pem")
    files = [each if each.startswith("--") else str(folder / each) for each in tls]
    options = ("--dev", "--data-dir", ".muniment", "--listen", "127.0.0.1:0", "--workers", "1", "--identities", *files)
    server = Server(served, *options, environment=environment_in(served))
    try:
        server.read_to_the_last_line()
        yield server
    finally:
        server.end()


def _add(secure, subject, *options):
    named = ("--issuer", DOMAIN, "--subject", subject, "--tenant", "development", "--ceiling", "internal", "--json")
    done = run(secure.folder, "identity", "add", *named, *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["identity_id"]


@pytest.fixture(scope="module")
def runtime(secure, folder) -> str:
    made = _add(secure, SUBJECT, "--certificate")
    wait_until(lambda: _code(secure, folder, "runtime") is OK, "the identity is known")
    return str(made)


def _code(secure, folder, name, *metadata):
    """How a call ends of the host that shows the certificate *name*."""
    files = [(folder / file).read_bytes() for file in ("authority.pem", f"{name}.key", f"{name}.pem")]
    with grpc.secure_channel(secure.address, grpc.ssl_channel_credentials(*files)) as channel:
        caller = Caller(channel, "")
        caller.metadata = metadata
        return code_of(caller)


def test_a_certificate_with_its_id_is_accepted(secure, folder, runtime):
    assert _code(secure, folder, "runtime") is OK


@pytest.mark.parametrize("name", sorted(HOSTS.keys() - {"runtime"}))
@pytest.mark.usefixtures("runtime")
def test_any_other_certificate_is_refused(secure, folder, name):
    assert _code(secure, folder, name) is REFUSED


@pytest.mark.parametrize("text", [SUBJECT, f"Bearer {SUBJECT}", "Bearer ", "", "Bearer mun_h_1_" + "A" * 43])
@pytest.mark.usefixtures("runtime")
def test_who_sends_a_credential_is_known_by_it_alone(secure, folder, text):
    """Also by none that is valid: a proxy with a certificate must not lend it to its callers."""
    assert _code(secure, folder, "runtime", ("authorization", text)) is REFUSED
    assert _code(secure, folder, "another", ("authorization", text)) is REFUSED


@pytest.mark.usefixtures("runtime")
def test_a_session_is_known_by_its_token(secure, folder):
    development = json.loads((secure.folder / ".muniment" / "development.json").read_text())

    assert _code(secure, folder, "another", ("authorization", f"Bearer {development['host_key']}")) is OK


def test_an_identity_by_tokens_is_none_by_certificates(secure, folder, runtime):
    keys = secure.folder / "keys.json"
    forge.write_keys(keys)
    _add(secure, f"{DOMAIN}/another", "--audience", forge.AUDIENCE, "--keys", str(keys))
    svid = forge.token(forge.claims(iss=None, sub=f"{DOMAIN}/another"))
    wait_until(lambda: _code(secure, folder, "name", ("authorization", f"Bearer {svid}")) is OK, "it is known")

    assert _code(secure, folder, "another") is REFUSED
    for audience in (forge.AUDIENCE, ""):
        by_token = forge.token(forge.claims(iss=None, sub=SUBJECT, aud=audience))
        assert _code(secure, folder, "name", ("authorization", f"Bearer {by_token}")) is REFUSED


def test_after_its_removal_the_next_call_fails(secure, folder):
    made = _add(secure, f"{SUBJECT}/more", "--certificate")
    wait_until(lambda: _code(secure, folder, "beside") is OK, "the identity is known")

    run(secure.folder, "identity", "remove", made, "--close-sessions")

    assert _code(secure, folder, "beside") is REFUSED


@pytest.mark.parametrize("options", [["--certificate", "--audience", "a"], ["--audience", "a"], []])
def test_tokens_or_certificates(secure, options):
    named = ("--issuer", DOMAIN, "--subject", f"{DOMAIN}/x", "--tenant", "development", "--ceiling", "internal")
    done = run(secure.folder, "identity", "add", *named, *options)

    assert done.returncode == 1
    assert "tokens or certificates?" in done.stderr
