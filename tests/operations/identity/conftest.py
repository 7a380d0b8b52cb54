"""A server that accepts identities, an OpenID Connect provider, and an issuer whose keys are in a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import grpc
import pytest

from tests.operations.identity import forge
from tests.operations.identity.issuer import Issuer
from tests.support.command_fixtures import in_development, made_before, root_folder
from tests.support.commands import Done, Server, run, wait_until
from tests.support.services import Caller

__all__ = ["made_before", "root_folder"]


@pytest.fixture(scope="package")
def issuer(root_folder) -> Iterator[Issuer]:
    folder = root_folder / "issuer"
    folder.mkdir()
    with Issuer(folder) as running:
        yield running


@pytest.fixture(scope="package")
def keys_file(root_folder):
    path = root_folder / "keys.json"
    forge.write_keys(path)
    return path


@pytest.fixture(scope="package")
def server(root_folder, made_before, issuer) -> Iterator[Server]:
    folder = root_folder / "identities"
    with in_development(folder, made_before, "--identities", "--workers", "1", SSL_CERT_FILE=str(issuer.ca)) as running:
        yield running


@pytest.fixture(scope="package")
def channel(server) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(server.address) as opened:
        yield opened


@pytest.fixture(scope="package")
def as_caller(channel) -> Callable[[str], Caller]:
    return lambda token: Caller(channel, token)


def code_of(caller: Caller) -> grpc.StatusCode:
    """How a call of the caller ends."""
    try:
        caller.list_agents()
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


@pytest.fixture(scope="package")
def identity(server) -> Callable[..., Done]:
    """Run `muniment identity`."""
    return lambda *arguments: run(server.folder, "identity", *arguments)


@pytest.fixture(scope="package")
def chatbot(identity, keys_file, as_caller) -> str:
    """The id of an identity whose tokens `forge` makes."""
    named = ("--issuer", forge.ISSUER, "--audience", forge.AUDIENCE, "--subject", forge.SUBJECT)
    done = identity(
        "add", *named, "--keys", str(keys_file), "--tenant", "development", "--ceiling", "internal", "--json"
    )
    assert done.returncode == 0, done.stderr
    wait_until(lambda: code_of(as_caller(forge.token())) is grpc.StatusCode.OK, "the identity is known")
    return str(json.loads(done.stdout)["identity_id"])
