"""The README's configuration starts the server, and its table has the tools."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from muniment import Classification
from tests.clients.mcp.conftest import COMMAND, talking_over_stdio
from tests.clients.mcp.tools import TOOLS

README = Path(__file__).parents[3] / "clients/python/README.md"
TEXT = README.read_text(encoding="utf-8").partition("\n## For models: MCP\n")[2].partition("\n## ")[0]


@pytest.mark.anyio
async def test_the_configuration_works(service, opened):
    (block,) = re.findall(r"^```json\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    (entry,) = json.loads(block)["mcpServers"].values()
    session = opened(Classification.PUBLIC)

    assert set(entry) == {"command", "env"}
    assert set(entry["env"]) == {"MUNIMENT_ADDRESS", "MUNIMENT_TOKEN"}
    assert entry["command"] == Path(COMMAND).name
    async with talking_over_stdio(service.address, session.token) as model:
        assert (await model.does("memory_save", key="tea", content="Assam"))["key"] == "tea"


def test_the_table_has_the_tools():
    table = TEXT.partition("| tools |")[2].partition("\n\n")[0]

    assert list(dict.fromkeys(re.findall(r"`(search|versions|(?:memory|note|block|passage)_\w+)`", table))) == TOOLS
