"""The method policy: as it is, and what stops the server."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto, MethodOptions
from google.protobuf.descriptor_pool import DescriptorPool

from muniment.v1 import classification_pb2, policy_pb2
from muniment_server.domain.classification import Classification
from muniment_server.domain.ids import RandomIds
from muniment_server.monitor import policy
from muniment_server.monitor.policy import PolicyError
from muniment_server.monitor.scopes import Scopes
from muniment_server.postgres.disk import Disk
from muniment_server.postgres.placement import Databases
from muniment_server.postgres.pool import SINGLE, Database
from muniment_server.search.embeddings import no_embedder
from muniment_server.search.search import Searcher
from muniment_server.transport import server
from muniment_server.transport.admission.pools import Limits
from muniment_server.transport.server import SERVICES, Server

TABLE = Path(__file__).with_name("policies.txt")
HOST, SESSION = policy_pb2.PRINCIPAL_HOST, policy_pb2.PRINCIPAL_SESSION
READ, WRITE, CONTROL = policy_pb2.FLOW_READ, policy_pb2.FLOW_WRITE, policy_pb2.FLOW_CONTROL
_numbers = itertools.count(1)


def table():
    """Method, who may call it, which way information flows, and what else is declared of it: one line each."""
    for service in SERVICES:
        for method in service.methods:
            declared = policy._declared(method)
            who = "+".join(policy_pb2.Principal.Name(each).removeprefix("PRINCIPAL_") for each in declared.principals)
            flow = policy_pb2.Flow.Name(declared.flow).removeprefix("FLOW_")
            named = ("may_be_repeated", "runs_long", "stores_text", "uses_own_session")
            marks = [name for name in named if getattr(declared, name)]
            others = " ".join([*marks, declared.memory_operation])
            yield f"{service.name + '/' + method.name:32} {who:13} {flow:8} {others}".rstrip()


def made_up(*, principals=(), flow=0, declared=True, level=False, streams=False):
    """A service `Vault` with one method `Peek`, in a pool of its own with the contract's files."""
    pool = DescriptorPool()
    for module in (classification_pb2, policy_pb2):
        for needed in (*module.DESCRIPTOR.dependencies, module.DESCRIPTOR):
            pool.AddSerializedFile(needed.serialized_pb)
    file = FileDescriptorProto(name=f"vault{next(_numbers)}.proto", package="vault", syntax="proto3")
    file.dependency.extend(["muniment/v1/policy.proto", "muniment/v1/classification.proto"])
    request = file.message_type.add(name="PeekRequest")
    if level:
        enum, message = FieldDescriptorProto.TYPE_ENUM, FieldDescriptorProto.TYPE_MESSAGE
        inner = file.message_type.add(name="Filter")
        inner.field.add(name="level", number=1, label=1, type=enum, type_name=".muniment.v1.Classification")
        request.field.add(name="filters", number=1, label=3, type=message, type_name=".vault.Filter")
    file.message_type.add(name="PeekResponse")
    method = file.service.add(name="Vault").method.add(
        name="Peek",
        input_type=".vault.PeekRequest",
        output_type=".vault.PeekResponse",
        server_streaming=streams,
    )
    if declared:
        method.options.Extensions[policy_pb2.policy].principals.extend(principals)
        method.options.Extensions[policy_pb2.policy].flow = flow
    pool.AddSerializedFile(file.SerializeToString())
    return pool.FindServiceByName("vault.Vault")


def test_the_policy_is_what_was_agreed():
    """A change of who may call what, or of what else a policy says, shows as a change of `policies.txt`."""
    agreed, declared = TABLE.read_text("utf-8").splitlines(), list(table())

    assert agreed == declared, "\n".join(
        [
            "tests/calls/monitor/policies.txt differs from the contract. If the change is meant, make its lines:",
            *declared,
        ]
    )


def test_what_may_be_repeated_agrees_with_the_idempotency():
    """A method may be idempotent and yet not be repeated: its second answer differs. Ids make these two repeatable."""
    methods = {method.name: method for service in SERVICES for method in service.methods}
    levels = {name: method.GetOptions().idempotency_level for name, method in methods.items()}
    repeated = {name for name, method in methods.items() if policy._declared(method).may_be_repeated}

    assert {name for name, level in levels.items() if level == MethodOptions.NO_SIDE_EFFECTS} <= repeated
    assert {name for name in repeated if levels[name] == MethodOptions.IDEMPOTENCY_UNKNOWN} == {
        "StorePassage",
        "EditNotes",
    }


def test_a_service_with_a_complete_policy_is_accepted():
    assert list(policy.policies([made_up(principals=[SESSION], flow=READ)])) == ["/vault.Vault/Peek"]


@pytest.mark.parametrize(
    ("options", "hole"),
    [
        ({"declared": False}, "no principal"),
        ({"principals": [SESSION]}, "no flow"),
        ({"flow": READ}, "no principal"),
        ({"principals": [0], "flow": CONTROL}, "no principal"),
        ({"principals": [SESSION, 0], "flow": CONTROL}, "no principal"),
        ({"principals": [HOST], "flow": READ}, "items flow to and from sessions only"),
        ({"principals": [HOST, SESSION], "flow": WRITE}, "items flow to and from sessions only"),
        ({"principals": [SESSION], "flow": READ, "level": True}, "a session could name a level"),
        ({"principals": [SESSION], "flow": READ, "streams": True}, "does not check a stream of answers"),
        ({"principals": [HOST, SESSION], "flow": CONTROL, "level": True}, "a session could name a level"),
    ],
)
def test_a_gap_in_a_policy_is_named(options, hole):
    with pytest.raises(PolicyError) as caught:
        policy.policies([made_up(**options)])

    assert "vault.Vault.Peek" in str(caught.value)
    assert hole in str(caught.value)


def test_a_method_without_a_policy_stops_the_server(monkeypatch):
    """Law 8: what no one declared is denied, from the start."""
    monkeypatch.setattr(server, "SERVICES", (*SERVICES, made_up(declared=False)))
    scopes = Scopes(
        Databases.of_one(Database(lambda _: "", pool_sizes=SINGLE)),
        RandomIds(),
        audit_reads_from=Classification.CONFIDENTIAL,
    )

    with pytest.raises(PolicyError, match=r"vault\.Vault\.Peek"):
        Server(scopes, Searcher(no_embedder), disk=Disk(None), limits=Limits(), open_reflection=True)


def test_c47_hosts_may_name_a_level():
    assert list(policy.policies([made_up(principals=[HOST], flow=CONTROL, level=True)])) == ["/vault.Vault/Peek"]
