"""AgentService."""

from __future__ import annotations

from tests.proof.golden.contract import INTERNAL, LEVELS, PUBLIC, RESTRICTED
from tests.proof.golden.stage import Stage


def agents(stage: Stage) -> None:
    for ceiling in LEVELS:
        _at_a_ceiling(stage, ceiling)
    _created(stage)
    _refused(stage)
    _listed(stage)
    _updated(stage)
    _deleted(stage)
    _erased(stage)
    _undeleted(stage)


def _at_a_ceiling(stage: Stage, ceiling: int) -> None:
    stage.say(f"A host up to {LEVELS[ceiling]}")
    host, name = stage.host(ceiling), f"of-{LEVELS[ceiling].lower()}"
    host.create_agent(agent_id=name, display_name="Ann Ä", language="en")
    host.create_agent(agent_id=name)
    host.get_agent(agent_id=name)
    host.update_agent(agent_id=name, display_name="Ann")
    host.list_agents()
    host.list_agents(page_token="no token")
    stage.open(PUBLIC, name, host=host).delete_block(label="personality")
    host.undelete_item(agent_id=name, kind=3, name="personality", classification=PUBLIC)
    host.erase_items(agent_id=name, kind=3, name="personality")
    host.delete_agent(agent_id=name)
    host.get_agent(agent_id=name)
    host.update_agent(agent_id=name, display_name="Bea")
    host.delete_agent(agent_id=name)


def _created(stage: Stage) -> None:
    stage.say("What an agent may be made of")
    host = stage.host()
    host.create_agent()
    host.create_agent(agent_id="Z.9_:-", language="pt-BR", memory_settings={})
    host.create_agent(
        agent_id="full",
        display_name="நினைவு",
        language="ta",
        memory_settings={
            "memory_enabled": False,
            "user_profile_enabled": True,
            "memory_char_limit": 0,
            "user_char_limit": 1_000_000,
        },
        initial_blocks=[{"label": "persona", "content": "I am full.\r\nLine 2"}, {"label": "human"}],
    )
    for level in LEVELS:
        stage.open(level, "full").list_blocks()
    host.create_agent(agent_id="full", initial_blocks=[{"label": "other"}])
    stage.host(tenant="globex").create_agent(agent_id="full")
    stage.host(tenant="globex").get_agent(agent_id="Z.9_:-")


def _refused(stage: Stage) -> None:
    stage.say("What breaks rules")
    host = stage.host()
    for agent_id in ("~a", "a b", "a" * 257, "a\u0308", "a\n"):
        host.create_agent(agent_id=agent_id)
    host.get_agent()
    host.get_agent(agent_id="a b")
    host.update_agent(agent_id="")
    host.delete_agent(agent_id="a b")
    host.create_agent(agent_id="x", display_name="x" * 257)
    host.create_agent(agent_id="x", display_name="a\0b\n")
    for language in ("e", "english-", "xx", "123"):
        host.create_agent(agent_id=f"language-{language.strip('-')}", language=language)
    for limit in (-1, 1_000_001):
        host.create_agent(agent_id="x", memory_settings={"memory_char_limit": limit, "user_char_limit": limit})
    host.create_agent(agent_id="x", initial_blocks=[{"label": "a"}, {"label": "a"}])
    host.create_agent(agent_id="x", initial_blocks=[{"label": ""}, {"label": "a b"}, {"label": "b", "content": "\0"}])
    host.create_agent(agent_id="x", initial_blocks=[{"label": "b", "content": "é" * 32769}])
    host.create_agent(agent_id="x", initial_blocks=[{"label": f"b{number}"} for number in range(65)])
    host.create_agent(agent_id="x", initial_blocks=[{"label": f"b{number}"} for number in range(257)])
    host.get_agent(agent_id="x")


def _listed(stage: Stage) -> None:
    stage.say("Pages")
    host = stage.host()
    pages = host.pages("ListAgents", page_size=2)
    host.list_agents(page_size=1000)
    host.list_agents(page_size=-1)
    host.list_agents(page_token=pages[0].next_page_token[:-1])
    host.list_agents(page_token="x" * 4097)
    stage.host(PUBLIC).list_agents(page_token=pages[0].next_page_token)
    stage.host(tenant="globex").list_agents(page_token=pages[0].next_page_token)
    stage.host(tenant="globex").list_agents()


def _updated(stage: Stage) -> None:
    stage.say("What may be changed")
    host = stage.host()
    host.update_agent(agent_id="full")
    host.update_agent(agent_id="full", display_name="", language="")
    host.update_agent(agent_id="full", language="de")
    host.update_agent(agent_id="full", memory_settings={"memory_enabled": True})
    host.update_agent(agent_id="full", memory_settings={"memory_char_limit": 7, "user_profile_enabled": False})
    host.update_agent(agent_id="full", memory_settings={"user_char_limit": -1})
    host.update_agent(agent_id="full", display_name="x" * 257, language="?")
    host.update_agent(agent_id="full", display_name="a\0")
    host.get_agent(agent_id="full")
    host.update_agent(agent_id="never", display_name="x")


def _erased(stage: Stage) -> None:
    stage.say("What hosts erase, up to their ceilings")
    stage.host().create_agent(agent_id="forgetful")
    sessions = stage.levels("forgetful")
    for level, session in sessions.items():
        session.save_memory(key="plan", content=f"text of {level}", tags=["pii"])
    for host in (stage.host(tenant="globex"), *(stage.host(level) for level in LEVELS if level != RESTRICTED)):
        host.erase_items(agent_id="forgetful", kind=1, name="plan")
        for session in sessions.values():
            session.list_memories()
    host = stage.host()
    host.erase_items(agent_id="forgetful", kind=1, tag="pii")
    sessions[RESTRICTED].list_memories()
    host.erase_items(agent_id="forgetful", kind=1)
    host.erase_items(agent_id="forgetful", kind=2, name="plan")
    host.erase_items(agent_id="forgetful", kind=9, name="plan", tag="pii", revision=-1, item_id="no id")
    host.delete_agent(agent_id="forgetful")


def _undeleted(stage: Stage) -> None:
    stage.say("What hosts undelete, at one level")
    stage.host().create_agent(agent_id="careless")
    sessions = stage.levels("careless")
    plan = {"agent_id": "careless", "kind": 1, "name": "plan"}
    for level, session in sessions.items():
        session.save_memory(key="plan", content=f"text of {level}", tags=["pii"])
        session.delete_memory(key="plan")
    for host in (stage.host(tenant="globex"), *(stage.host(level) for level in LEVELS)):
        for level in LEVELS:
            host.undelete_item(**plan, classification=level)
    for session in sessions.values():
        session.get_memory(key="plan")
    host = stage.host()
    host.undelete_item(**plan, classification=PUBLIC)
    host.undelete_item(**plan)
    host.undelete_item(**plan | {"kind": 2}, classification=PUBLIC)
    host.undelete_item(agent_id="careless", kind=9, classification=9)
    host.delete_agent(agent_id="careless")


def _deleted(stage: Stage) -> None:
    stage.say("What is left of an agent")
    host = stage.host()
    sessions = stage.levels("gone") if host.create_agent(agent_id="gone") else {}
    for session in sessions.values():
        session.save_memory(key="plan", content="text")
    stage.host(tenant="globex").delete_agent(agent_id="gone")
    stage.host(INTERNAL).delete_agent(agent_id="gone")
    stage.host(RESTRICTED).delete_agent(agent_id="gone")
    for session in sessions.values():
        session.get_memory(key="plan")
        host.get_session(session_id=session.session.session_id)
    host.open_session(agent_id="gone", taint=PUBLIC)
    host.list_sessions(agent_id="gone", include_closed=True)
    host.create_agent(agent_id="gone")
    stage.open(RESTRICTED, "gone").list_memories()
