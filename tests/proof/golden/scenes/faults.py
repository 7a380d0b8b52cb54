"""What callers get when the server cannot answer."""

from __future__ import annotations

from grpc_health.v1 import health_pb2

from tests.proof.golden.contract import LEVELS, METHODS, PUBLIC
from tests.proof.golden.stage import Stage


def faults(stage: Stage) -> None:
    stage.host().create_agent(agent_id="alice")
    sessions = stage.levels()
    for session in sessions.values():
        session.save_memory(key="plan", content="text")
    _health(stage)
    _overloaded(stage)
    stage.say("While the server is closed")
    with stage.stand.closed():
        for rpc in METHODS:
            sessions[PUBLIC].call(rpc)
        stage.anonymous("without").list_memories()
        _health(stage)
        sessions[PUBLIC].send("/muniment.v1.MemoryService/Teleport", b"")
    stage.say("While a right is missing at PUBLIC")
    with stage.stand.revoked():
        for session in sessions.values():
            session.get_memory(key="plan")
        sessions[PUBLIC].list_memories()
        sessions[PUBLIC].import_passages({"passage": {"content": "x"}})
    stage.say("While statements are cut off")
    hosts = [*map(stage.host, LEVELS)]
    with stage.stand.late():
        for session in sessions.values():
            session.save_memory(key="plan", content="late")
            session.list_memories()
        for host in hosts:
            host.open_session(agent_id="alice", taint=PUBLIC)
    stage.say("Afterwards")
    for session in sessions.values():
        session.get_memory(key="plan")
    _rate_limited(stage)
    _full_disk(stage)


def _rate_limited(stage: Stage) -> None:
    stage.say("An agent that may make ten calls, since no time passes for rates")
    stage.host().create_agent(agent_id="hasty", limits={"calls_per_second": 1})
    sessions = stage.levels("hasty")
    for session in sessions.values():
        for _ in range(11):
            session.get_memory(key="plan")
    stage.say("An agent that may store nothing")
    stage.host().create_agent(agent_id="full", limits={"max_items": 0})
    for session in stage.levels("full").values():
        session.save_memory(key="plan", content="x")
    stage.host().get_agent(agent_id="full")


def _full_disk(stage: Stage) -> None:
    sessions = stage.levels()
    for session in sessions.values():
        session.get_memory(key="plan")
    stage.say("While the disk is full")
    with stage.stand.full():
        for session in sessions.values():
            session.save_memory(key="plan", content="x")
            session.get_memory(key="plan")
    stage.say("Afterwards, for half a minute")
    for session in sessions.values():
        session.save_memory(key="plan", content="x")
        session.import_passages({"passage": {"content": "x"}})
        session.get_memory(key="plan")
        session.delete_memory(key="plan")
    stage.host().create_agent(agent_id="bob")


def _health(stage: Stage) -> None:
    for service in ("", "muniment.v1.MemoryService", "muniment.v1.AuditService", "never"):
        request = health_pb2.HealthCheckRequest(service=service).SerializeToString()
        stage.anonymous("without").send("/grpc.health.v1.Health/Check", request)


def _overloaded(stage: Stage) -> None:
    stage.say("While a server that takes one call at a time has one")
    with stage.stand.small() as small:
        crowded = Stage(small, f"{stage.scene} overloaded")
        crowded.host().create_agent(agent_id="alice")
        sessions = crowded.levels()
        slow = sessions[PUBLIC]
        with small.locked(slow.session.conversation_id):
            wait_for_it = crowded.begin_beside(slow, "SaveMemory", key="plan", content="x")
            small.wait_until_blocked()
            for session in sessions.values():
                session.get_memory(key="plan")
        wait_for_it()
        stage.take(crowded)
