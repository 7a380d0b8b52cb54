"""BlockService for hosts, and what consumers see of shared blocks."""

from __future__ import annotations

from tests.proof.golden.contract import LEVELS, RESTRICTED
from tests.proof.golden.stage import Actor, Stage

_LINKS = ("AttachBlock", "DetachBlock")
_SHARED = ("CreateSharedBlock", "DeleteSharedBlock", "ListBlockConsumers")


def sharing(stage: Stage) -> None:
    for agent in ("owner", "reader", "other"):
        stage.host().create_agent(agent_id=agent, initial_blocks=[{"label": "own", "content": f"of {agent}"}])
    readers, owners = stage.levels("reader"), stage.levels("owner")
    for ceiling in LEVELS:
        _at_a_ceiling(stage, stage.host(ceiling))
    _shadows(stage, owners, readers)
    _not_there(stage.host())
    _broken_rules(stage.host())
    _consumers(stage)
    _taken_back(stage, owners, readers)


def _at_a_ceiling(stage: Stage, host: Actor) -> None:
    stage.say(f"A host up to {LEVELS[host.level]}")
    shared = {"owner_agent_id": f"owner-{host.level}", "label": "shared"}
    for agent in (f"owner-{host.level}", f"reader-{host.level}"):
        host.create_agent(agent_id=agent)
    host.call("CreateSharedBlock", owner_agent_id="owner", label="plan")
    host.call("AttachBlock", agent_id="reader", **shared)
    host.call("CreateSharedBlock", content="told to all", **shared)
    host.call("CreateSharedBlock", **shared)
    for rpc in _LINKS:
        host.call(rpc, agent_id=f"reader-{host.level}", **shared)
        host.call(rpc, agent_id=f"reader-{host.level}", **shared)
        host.call("ListBlockConsumers", **shared)
    host.call("AttachBlock", agent_id=f"reader-{host.level}", **shared)
    host.call("AttachBlock", agent_id=f"owner-{host.level}", **shared)
    host.call("DeleteSharedBlock", **shared)
    host.call("DeleteSharedBlock", **shared)
    host.call("ListBlockConsumers", **shared)


def _shadows(stage: Stage, owners: dict[int, Actor], readers: dict[int, Actor]) -> None:
    stage.say("A shared block at every level")
    host, plan = stage.host(), {"owner_agent_id": "owner", "label": "plan"}
    for level in sorted(LEVELS, reverse=True):
        owners[level].update_block(label="plan", content=f"of {LEVELS[level]}")
    host.create_shared_block(content="taken", **plan)
    host.create_shared_block(**plan)
    host.attach_block(agent_id="reader", **plan)
    host.create_shared_block(owner_agent_id="other", label="plan", content="of other")
    host.attach_block(owner_agent_id="other", label="plan", agent_id="reader")
    for level, reader in readers.items():
        reader.list_blocks()
        reader.get_block(label="plan")
        reader.get_block(**plan)
        reader.get_block(label="plan", owner_agent_id="other")
        reader.update_block(label="plan", content=f"own of {level}")
        reader.edit_block(label="plan", append={"content": "."})
        reader.render_prompt()
        reader.delete_block(label="plan")
        reader.delete_block(label="plan")
        owners[level].get_block(label="plan")
        stage.open(level, "other").get_block(**plan)
        for block in reader.pages("ListBlocks", page_size=1)[0].blocks:
            reader.get_block(label=block.label, owner_agent_id=block.owner_agent_id)


def _not_there(host: Actor) -> None:
    host.stage.say("What is not there")
    for rpc in _SHARED:
        host.call(rpc, owner_agent_id="never", label="plan")
        host.stage.host(tenant="globex").call(rpc, owner_agent_id="owner", label="plan")
    for rpc in _LINKS:
        host.call(rpc, owner_agent_id="never", label="plan", agent_id="reader")
        host.call(rpc, owner_agent_id="owner", label="plan", agent_id="never")
        host.call(rpc, owner_agent_id="owner", label="never", agent_id="reader")
        host.call(rpc, owner_agent_id="owner", label="plan", agent_id="owner")
        host.stage.host(tenant="globex").call(rpc, owner_agent_id="owner", label="plan", agent_id="reader")


def _broken_rules(host: Actor) -> None:
    host.stage.say("What breaks rules")
    for rpc in _SHARED:
        host.call(rpc)
        host.call(rpc, owner_agent_id="owner", label="a b")
    for rpc in _LINKS:
        host.call(rpc)
        host.call(rpc, owner_agent_id="owner", label="a\0", agent_id="reader")
    host.create_shared_block(owner_agent_id="owner", label="new", content="a\0")
    host.create_shared_block(owner_agent_id="owner", label="new", content="x" * 65537)
    host.list_block_consumers(owner_agent_id="owner", label="plan", page_size=-1, page_token="?")
    host.list_block_consumers(owner_agent_id="owner", label="plan", page_token="no token")


def _consumers(stage: Stage) -> None:
    stage.say("Consumers")
    host, plan = stage.host(), {"owner_agent_id": "owner", "label": "plan"}
    for number in range(4):
        host.create_agent(agent_id=f"consumer{number}")
        host.attach_block(agent_id=f"consumer{number}", **plan)
    for ceiling in LEVELS:
        stage.host(ceiling).list_block_consumers(**plan)
    token = host.pages("ListBlockConsumers", page_size=2, **plan)[0].next_page_token
    host.list_block_consumers(owner_agent_id="other", label="plan", page_token=token)
    host.list_block_consumers(page_token=token + "x", **plan)
    host.delete_agent(agent_id="consumer1")
    host.list_block_consumers(**plan)


def _taken_back(stage: Stage, owners: dict[int, Actor], readers: dict[int, Actor]) -> None:
    stage.say("What is taken back")
    host, plan = stage.host(), {"owner_agent_id": "owner", "label": "plan"}
    host.detach_block(agent_id="reader", **plan)
    for reader in readers.values():
        reader.get_block(**plan)
    host.attach_block(agent_id="reader", **plan)
    owners[RESTRICTED].delete_block(label="plan")
    for reader in readers.values():
        reader.get_block(**plan)
    host.delete_shared_block(**plan)
    for level, reader in readers.items():
        reader.get_block(**plan)
        owners[level].get_block(label="plan")
    host.delete_agent(agent_id="other")
    for reader in readers.values():
        reader.list_blocks()
