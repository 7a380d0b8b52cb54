"""The README's configuration starts the server, and its table has the tools."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from muniment import Classification
from tests.clients.mcp.conftest import COMMAND, serving
from tests.clients.mcp.tools import TOOLS
from tests.support.answers import PUBLIC
from tests.support.services import new_host_key

README = Path(__file__).parents[3] / "clients/python/README.md"
TEXT = README.read_text(encoding="utf-8").partition("\n## For models: MCP\n")[2].partition("\n## ")[0]


HOSTS = ("Claude Code", "VS Code", "Zed")
BLOCKS = re.findall(r"^```json\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("number", range(len(HOSTS)), ids=HOSTS)
@pytest.mark.anyio
async def test_a_configuration_works(service, owner, number):
    """With its command and arguments, once the host has put the key in."""
    owner.create_agent("ada", known_from=Classification.PUBLIC)
    (entry,) = next(value for value in json.loads(BLOCKS[number]).values() if isinstance(value, dict)).values()
    key = new_host_key(service.database, "acme", PUBLIC)

    assert HOSTS[number] in TEXT.split("```json")[number]
    assert entry.keys() - {"type"} == {"command", "args", "env"}
    assert entry["env"].keys() == {"MUNIMENT_ADDRESS", "MUNIMENT_HOST_KEY"}
    command = str(Path(COMMAND).with_name(entry["command"]))
    async with serving(service, key, command, *entry["args"]) as model:
        assert (await model.does("memory_save", key="tea", content="Assam"))["key"] == "tea"


def test_the_table_has_the_tools():
    table = TEXT.partition("| tools |")[2].partition("\n\n")[0]

    assert list(dict.fromkeys(re.findall(r"`(search|versions|(?:memory|note|block|passage)_\w+)`", table))) == TOOLS
