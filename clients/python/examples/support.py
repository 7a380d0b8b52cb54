"""The support desk: a host, its tools, and a script in place of a model. See `clients/three_services.sh`.

Each line of the standard input is a message in the conversation. Its answer goes to the website, where all can read it.
"""

from __future__ import annotations

import sys

import muniment
from muniment import Classification, HostClient, SessionClient

TICKETS = "Promised a voucher of 20 euros in March."
"""What the desk's own system knows of the customer: INTERNAL."""


class Tools:
    """What the model can do. It names no level: the host raises the taint before it shows the model more."""

    def __init__(self, host: HostClient, session: SessionClient) -> None:
        self._host = host
        self._session = session

    def recall(self, query: str) -> str:
        """What the service remembers, best match first."""
        found = self._session.search_memories(query, max_results=1).results
        return found[0].memory.content if found else "I do not know."

    def remember(self, key: str, content: str) -> None:
        """Save a memory, at the taint of the conversation."""
        self._session.save_memory(key, content)

    def read_tickets(self) -> str:
        """What earlier tickets of the customer say."""
        self._host.raise_taint(self._session, Classification.INTERNAL, reason="read the tickets")
        return TICKETS


def model(prompt: str, message: str, tools: Tools) -> str:
    """A script. A service would send all three to a model, and run the calls that it asks for."""
    if "live" in message:
        return tools.recall("address")
    if "promise" in message:
        promised = tools.read_tickets()
        tools.remember("promise", promised)
        return promised
    return "I do not know."


def main(customer: str, conversation: str) -> None:
    """Answer each message. An answer that is too sensitive for the website is held for a person to read."""
    with muniment.connect_host() as host, host.conversation(customer, conversation) as session:
        tools = Tools(host, session)
        for message in sys.stdin:
            answer = model(session.render_prompt().text, message, tools)
            taint = session.get_session().taint
            held = "" if taint.can_flow_to(Classification.PUBLIC) else f"held at {taint.name}: "
            print(f"support: {held}{answer}")


if __name__ == "__main__":
    main(*sys.argv[1:])
