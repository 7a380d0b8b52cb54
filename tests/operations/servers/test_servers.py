"""Tenants on several database servers, through the server and the commands as people use them."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from muniment_server.background.sealer import Sealer
from muniment_server.domain import tokens
from muniment_server.domain.classification import Classification
from muniment_server.postgres.placement import PlacedDatabase
from muniment_server.postgres.pool import SINGLE
from muniment_server.postgres.pool import Database as RoleDatabase
from muniment_server.runtime import claims, databases, servers_file
from muniment_server.runtime.configuration import ConfigError
from muniment_server.runtime.databases import NotReady
from muniment_server.telemetry.metrics import REGISTRY
from tests.operations.servers.conftest import Servers, serving_from, session_of
from tests.support.commands import Server, objects, run, run_process, wait_until
from tests.support.services import Caller

PUBLIC = Classification.PUBLIC
_OPTIONS = ("--workers", "1", "--drain-seconds", "1")


def _number(key: str) -> int:
    token = tokens.parse(key)
    assert token is not None
    return int(token.tenant)


def test_each_tenant_is_served_by_its_server(servers: Servers, serving: Callable[..., Server]) -> None:
    """A server that is away stops its own tenants only. The file is read again by a reload, unless it is wrong."""
    at_a, at_b = servers.key("acme", "a"), servers.key("globex", "b")
    servers.write({_number(at_b): "b"})
    metrics = f"unix:{servers.folder / 'metrics'}"
    server = serving("--servers", str(servers.file), "--metrics", metrics, *_OPTIONS)
    with grpc.insecure_channel(server.address) as channel:
        hosts = {"a": Caller(channel, at_a), "b": Caller(channel, at_b)}
        for host in hosts.values():
            host.create_agent(agent_id="alice")
        sessions = {name: session_of(host, PUBLIC) for name, host in hosts.items()}
        for name, session in sessions.items():
            session.save_memory(key="plan", content=f"at {name}")

        assert _contents(servers) == {"a": ["at a"], "b": ["at b"]}

        _close(servers, "b")
        assert sessions["b"].observe("GetMemory", key="plan").code is grpc.StatusCode.UNAVAILABLE
        assert hosts["b"].observe("ListAgents").code is grpc.StatusCode.UNAVAILABLE
        assert sessions["a"].get_memory(key="plan").memory.content == "at a"
        assert hosts["a"].list_agents().agents
        assert _health(channel) == health_pb2.HealthCheckResponse.SERVING
        (status,) = objects(run(servers.folder, "status", "--metrics", metrics, "--json"))
        assert (status["ready"], status["servers_up"]) == (True, {"a": 1, "b": 0})
        _open(servers, "b")
        wait_until(lambda: sessions["b"].observe("GetMemory", key="plan").code is grpc.StatusCode.OK, "b is back")

        servers.file.write_text("[servers\n")
        _reload(server, "the reload failed")
        assert "is not TOML" in server.errors.read_text()
        assert sessions["b"].get_memory(key="plan").memory.content == "at b"

        servers.write({_number(at_b): "b"})
        moved = servers.key("initech", "a")
        Caller(channel, moved).create_agent(agent_id="alice")
        assert servers.run("tenant", "move", "initech", "--to", "b", "--yes").returncode == 0
        new = servers.key("initech", "b")
        servers.write({_number(at_b): "b", _number(new): "b"})
        assert _status(server, new) is grpc.StatusCode.UNAUTHENTICATED
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: _status(server, new) is grpc.StatusCode.OK, "the tenant is served where it is", seconds=90)
        assert _status(server, moved) is grpc.StatusCode.UNAUTHENTICATED


def _status(server: Server, key: str) -> grpc.StatusCode:
    """What a host gets over a new connection: a worker that drains takes none."""
    with grpc.insecure_channel(server.address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        return Caller(channel, key).observe("ListAgents").code


def _contents(servers: Servers) -> dict[str, list[str]]:
    found = {}
    for name, database in servers.databases.items():
        with database.as_owner() as owner:
            rows: Any = owner.execute("SELECT content FROM muniment_public.item WHERE name = 'plan'").fetchall()
        found[name] = [row.content for row in rows]
    return found


def _close(servers: Servers, name: str) -> None:
    """Have a database accept no connections, and end those that it has."""
    database = servers.databases[name]
    with database.as_admin() as admin:
        admin.execute("SELECT set_config('application_name', 'closes', false)")
        admin.execute(f"ALTER DATABASE {database.name} CONNECTION LIMIT 0".encode())
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()",
            [database.name],
        )


def _open(servers: Servers, name: str) -> None:
    database = servers.databases[name]
    with database.as_admin() as admin:
        admin.execute(f"ALTER DATABASE {database.name} CONNECTION LIMIT -1".encode())


def _health(channel: grpc.Channel) -> int:
    health: Any = health_pb2_grpc.HealthStub(channel)  # the stubs of its types know no methods
    return int(health.Check(health_pb2.HealthCheckRequest()).status)


def _reload(server: Server, words: str) -> None:
    before = server.errors.read_text().count(words)
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: server.errors.read_text().count(words) > before, words, seconds=90)


def test_two_servers_that_have_one_tenant_are_not_served(servers: Servers, tmp_path: Path) -> None:
    """Such as after the restore of a backup that is older than a move."""
    number = _number(servers.key("acme", "a"))
    with servers.databases["b"].as_owner() as owner:
        owner.execute("INSERT INTO vault.tenant (tenant, name) OVERRIDING SYSTEM VALUE VALUES (%s, 'acme')", [number])
    placement = databases.served_placement(servers.file)

    with pytest.raises(NotReady, match=f"the servers a and b both have the tenant {number}"):
        databases.require_ready(placement, connections=10, epochs=tmp_path)

    assert f"both have the tenant {number}" in _doctor(servers)


def test_a_tenant_that_two_servers_have_is_refused_while_serving_and_no_other_is(servers: Servers) -> None:
    """It is unknown which of the two has its newest data."""
    keys = [servers.key("acme", "a"), servers.key("other", "a")]
    with serving_from(servers, servers.placement({})) as running:
        twice, once = (Caller(running.channel, key) for key in keys)
        twice.create_agent(agent_id="alice")
        session = session_of(twice, PUBLIC)
        with servers.databases["b"].as_owner() as owner:
            owner.execute(
                "INSERT INTO vault.tenant (tenant, name) OVERRIDING SYSTEM VALUE VALUES (%s, 'acme')",
                [_number(keys[0])],
            )
        running.check()

        codes = {
            session.observe("SaveMemory", key="plan", content="x").code,
            twice.observe("ListAgents").code,
        }
        assert codes == {grpc.StatusCode.UNAVAILABLE}
        once.create_agent(agent_id="bob")


def _grant_too_much(servers: Servers, name: str) -> None:
    with servers.databases[name].as_owner() as owner:
        owner.execute("GRANT SELECT ON muniment_restricted.item TO muniment_public")


def _grant_no_more(servers: Servers, name: str) -> None:
    with servers.databases[name].as_owner() as owner:
        owner.execute("REVOKE SELECT ON muniment_restricted.item FROM muniment_public")


@pytest.mark.parametrize(
    ("trouble", "end_it"), [(_close, _open), (_grant_too_much, _grant_no_more)], ids=["away", "wrong grants"]
)
def test_a_tenant_that_two_servers_have_stays_refused_while_one_cannot_be_asked(
    trouble: Callable[[Servers, str], None], end_it: Callable[[Servers, str], None], servers: Servers
) -> None:
    """The one that answers may have the old data."""
    key = servers.key("acme", "a")
    with serving_from(servers, servers.placement({})) as running:
        host = Caller(running.channel, key)
        with servers.databases["b"].as_owner() as owner:
            owner.execute(
                "INSERT INTO vault.tenant (tenant, name) OVERRIDING SYSTEM VALUE VALUES (%s, 'acme')", [_number(key)]
            )
        running.check()
        trouble(servers, "b")
        running.check()
        assert host.observe("ListAgents").code is grpc.StatusCode.UNAVAILABLE

        end_it(servers, "b")
        with servers.databases["b"].as_owner() as again:
            again.execute("DELETE FROM vault.tenant WHERE tenant = %s", [_number(key)])
        running.check()
        assert host.observe("ListAgents").code is grpc.StatusCode.OK


def test_wrong_grants_at_one_server_stop_its_tenants_only(servers: Servers) -> None:
    keys = {name: servers.key(f"of-{name}", name) for name in servers.databases}
    with serving_from(servers, servers.placement({_number(keys["b"]): "b"})) as running:
        _grant_too_much(servers, "b")
        running.check()

        codes = {name: Caller(running.channel, key).observe("ListAgents").code for name, key in keys.items()}

    assert codes == {"a": grpc.StatusCode.OK, "b": grpc.StatusCode.UNAVAILABLE}


def test_the_metrics_say_of_each_server_up_to_when_its_audit_log_is_sealed(servers: Servers) -> None:
    """One that is sealed hid that another was not, and the alert never fired."""
    names = {"a": "sealed", "b": "not sealed"}
    with ExitStack() as stack:
        pools = {
            name: stack.enter_context(closing(RoleDatabase(servers.databases[name].conninfo, pool_sizes=SINGLE)))
            for name in names
        }
        sealers = [Sealer(PlacedDatabase(names[name], pools[name]), lambda: True) for name in names]
        _close(servers, "b")
        for sealer in sealers:
            sealer.seal_all()

    sealed = {
        name: REGISTRY.get_sample_value("muniment_audit_sealed_timestamp_seconds", {"server": names[name]})
        for name in names
    }
    assert sealed["a"] == pytest.approx(time.time(), abs=60)
    assert sealed["b"] == 0


def test_servers_that_would_give_the_same_numbers_are_not_served(servers: Servers, tmp_path: Path) -> None:
    """Until `muniment migrate` has given each a range of its own."""
    with servers.databases["b"].as_owner() as owner:
        owner.execute("ALTER TABLE vault.tenant ALTER COLUMN tenant SET MINVALUE 1 SET MAXVALUE 99 SET START 1 RESTART")
    placement = databases.served_placement(servers.file)
    with pytest.raises(NotReady, match="would give new tenants the same numbers: run `muniment migrate"):
        databases.require_ready(placement, connections=10, epochs=tmp_path)

    done = servers.run("migrate")

    assert done.stdout == f"new tenants at b get numbers from {claims.RANGE + 1} to {2 * claims.RANGE}\n", done.stderr
    assert "Nothing to do" in servers.run("migrate").stderr
    databases.require_ready(placement, connections=10, epochs=tmp_path)
    assert _number(servers.key("globex", "b")) == claims.RANGE + 1


def test_a_database_that_joins_keeps_its_tenants(servers: Servers) -> None:
    """It was served alone, and all numbers were its own."""
    with servers.databases["a"].as_owner() as owner:
        owner.execute("ALTER TABLE vault.tenant ALTER COLUMN tenant SET MAXVALUE 9223372036854775807")
    first = _number(servers.key("acme", "a"))

    assert "new tenants at a get numbers from 1 to" in servers.run("migrate").stdout
    assert _number(servers.key("initech", "a")) == first + 1


def test_a_server_that_joins_gets_no_numbers_of_tenants_that_have_moved(servers: Servers) -> None:
    """Their first server, which had that range, is gone."""
    number = _number(servers.key("globex", "b"))
    assert servers.run("tenant", "move", "globex", "--to", "a", "--yes").returncode == 0
    with servers.databases["b"].as_owner() as owner:  # as a new database has it
        owner.execute(
            "ALTER TABLE vault.tenant ALTER COLUMN tenant SET MINVALUE 1 SET MAXVALUE 9223372036854775807 SET START 1"
            " RESTART"
        )

    done = servers.run("migrate")

    assert done.stdout.startswith(f"new tenants at b get numbers from {2 * claims.RANGE + 1} to "), done.stderr
    assert number == claims.RANGE + 1


def test_a_server_that_was_restored_gives_no_number_again_that_a_moved_tenant_has(servers: Servers) -> None:
    """The backup is older than the tenant."""
    number = _number(servers.key("globex", "b"))
    assert servers.run("tenant", "move", "globex", "--to", "a", "--yes").returncode == 0
    with servers.databases["b"].as_owner() as owner:
        owner.execute("ALTER TABLE vault.tenant ALTER COLUMN tenant RESTART")

    assert _number(servers.key("initech", "b")) == number + 1


def test_a_server_without_a_range_of_its_own_does_not_begin_after_the_tenants_of_others(servers: Servers) -> None:
    """It would give numbers of their ranges, and could get none of its own later."""
    servers.key("globex", "b")
    with servers.databases["a"].as_owner() as owner:
        owner.execute("ALTER TABLE vault.tenant ALTER COLUMN tenant SET MAXVALUE 9223372036854775807")

    assert _number(servers.key("initech", "a")) < claims.RANGE
    assert "new tenants at a get numbers from 1 to" in servers.run("migrate").stdout


def test_a_tenant_elsewhere_than_the_file_says_is_named(servers: Servers) -> None:
    number = _number(servers.key("globex", "b"))

    assert f'! the tenant {number} is at the server b, and its calls go to a: write {number} = "b"' in _doctor(servers)
    servers.write({number: "b"})
    assert "✓ each tenant is at one server, where its calls go" in _doctor(servers)


def test_a_new_key_comes_with_the_line_for_the_file_and_says_when_it_is_accepted(servers: Servers) -> None:
    servers.file.write_text(servers.file.read_text().replace("[tenants]", ""))  # as a first file
    create = ("host-key", "create", "--tenant", "globex", "--ceiling", "public", "--server", "b", "--json")
    done = servers.run(*create)

    (key,) = objects(done)
    assert f'Write {_number(key["host_key"])} = "b" below [tenants]' in done.stderr
    assert "add the section if it is missing" in done.stderr
    assert "The key is accepted after that." in done.stderr


def _doctor(servers: Servers) -> str:
    return servers.run("doctor").stdout


def test_a_key_is_created_where_its_tenant_is(servers: Servers) -> None:
    servers.key("acme", "a")
    create = ("host-key", "create", "--tenant", "acme", "--ceiling", "public")

    for arguments, words in (
        (("--server", "b"), "the server a has that tenant"),
        (("--server", "c"), "there is no server c"),
        ((), "give --server, one of a, b"),
    ):
        done = servers.run(*create, *arguments)
        assert (done.returncode, words in done.stderr) == (1, True), done.stderr
    with servers.databases["b"].as_owner() as owner:
        assert owner.execute("SELECT FROM vault.tenant").fetchall() == []


def test_an_identity_is_one_of_all_servers(servers: Servers) -> None:
    """Its tokens would stand for two hosts, and so for none: it would be revoked by the second."""
    add = (
        "identity", "add", "--issuer", "https://login.example", "--audience", "muniment", "--subject", "chatbot",
        "--keys", "/keys.json", "--ceiling", "public",
    )  # fmt: skip
    assert servers.run(*add, "--tenant", "acme", "--server", "a").returncode == 0

    done = servers.run(*add, "--tenant", "globex", "--server", "b")

    assert (done.returncode, "is an identity of acme already" in done.stderr) == (1, True), done.stderr
    with servers.databases["b"].as_owner() as owner:
        assert owner.execute("SELECT FROM vault.host_key").fetchall() == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[servers\na = 1", "is not TOML"),
        ("", "names no server"),
        ("[servers]\n", "names no server"),
        ("[server]\na = 'host=x'", "has 'server'"),
        ("[servers]\n'A b' = 'host=x'", "the name of a server has"),
        ("[servers]\na = 7", "the server a has no connection URL"),
        ("[servers]\na = 'postgresql://a:secret@b@c/d'", "the server a has no connection URL"),
        ("[servers]\na = 'host=x'\n[tenants]\n0 = 'a'", "'0' in [tenants] is not the number of a tenant"),
        ("[servers]\na = 'host=x'\n[tenants]\nacme = 'a'", "'acme' in [tenants] is not the number of a tenant"),
        ("[servers]\na = 'host=x'\n[tenants]\n17 = 'b'", "the tenant 17 is at a server that is not in [servers]"),
        ("tenants = 1\n[servers]\na = 'host=x'", "[tenants] has lines like"),
    ],
)
def test_a_wrong_file_is_refused_in_a_sentence_that_quotes_no_url(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "servers.toml"
    file.write_text(text)

    with pytest.raises(ConfigError) as caught:
        servers_file.read(file)

    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_url_with_a_user_is_refused(folder: Path) -> None:
    (folder / "servers.toml").write_text("[servers]\na = 'postgresql://postgres@db.example/muniment'")

    done = run_process(folder, "serve", "--servers", "servers.toml", "--listen", "127.0.0.1:0")

    assert done.returncode == 1
    assert "the URL must name a host and a database, but no user" in done.stderr
