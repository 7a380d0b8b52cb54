"""Examples of the Java client's README, on a server of ours."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.clients.conformance.clients import CLIENTS
from tests.clients.conformance.toolchains import make
from tests.tools.tour.readme import ROOT

pytestmark = pytest.mark.proof  # Maven takes a minute

_CLIENT = ROOT / "clients" / "java"
_BLOCKS = re.findall(r"^```java\n(.*?)^```", (_CLIENT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)
_RAISING = next(block for block in _BLOCKS if "RESTART_ON_TAINT_CHANGE" in block)

_GOING_ON = next(block for block in _BLOCKS if "host.conversation(" in block)

_CALLER = f"""\
import muniment.*;
import muniment.v1.*;

class Caller {{
  public static void main(String[] arguments) {{
    try (var host = HostClient.fromEnvironment()) {{
      var agent = host.createAgent(r -> {{}}).getAgent().getAgentId();
      var level = Classification.CLASSIFICATION_PUBLIC;
      try (var session = host.openSession(r -> r.setAgentId(agent).setTaint(level))) {{
        session.saveMemory(r -> r.setKey("errands").setContent("something"));
        session.saveMemory(r -> r.setKey("tea").setContent("something"));
        Pages.of(
                token -> session.listMemories(r -> r.setPageSize(1).setPageToken(token)),
                ListMemoriesResponse::getNextPageToken)
            .forEach(page -> raise(host, session));
      }} catch (MunimentException error) {{
        System.out.println(error.code() + " " + error.reasonName());
      }}
    }}
  }}

  private static void raise(HostClient host, SessionClient session) {{
    {_RAISING}
  }}
}}
"""
"""Raises the taint, as the example does, in the middle of a list of its own."""

_HOST = f"""\
import muniment.*;
import muniment.v1.*;

class Host {{
  public static void main(String[] arguments) {{
    try (var host = HostClient.fromEnvironment()) {{
      {_GOING_ON}
      var second = com.google.protobuf.Duration.newBuilder().setSeconds(1);
      try (var conversation = host.conversation(r -> r.setAgentId(ada).setTtl(second))) {{
        var first = conversation.opened().orElseThrow().getExpireTime();
        while (first.equals(conversation.opened().orElseThrow().getExpireTime())) {{
          conversation.saveMemory(r -> r.setKey("last-line").setContent("something"));
        }}
        System.out.println("renewed");
      }}
    }}
  }}
}}
"""
"""The examples, and a conversation that goes on until its session is renewed."""


@pytest.fixture
def java(compilers, folder):
    make(next(client for client in CLIENTS if client.name == "java"))
    path = f"{_CLIENT}/target/classes:{(_CLIENT / 'target' / 'conformance.classpath').read_text()}"

    def run(source: str) -> str:
        program = Path(folder) / "Program.java"
        program.write_text(source, "utf-8")
        done = subprocess.run(
            ["java", "-cp", path, program],
            env=compilers,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.stderr == ""
        return done.stdout

    return run


def test_the_first_example(java):
    assert java(_BLOCKS[0]) == "CLASSIFICATION_PUBLIC Assam, no sugar\n"


def test_a_raised_taint(java):
    assert java(_CALLER) == "errands\ntea\nABORTED TAINT_CHANGED\n"


def test_a_conversation_goes_on(java):
    assert java(_HOST) == "chat-42 CLASSIFICATION_CONFIDENTIAL\nrenewed\n"
