"""The file of development mode: whatever else it contains, it is written anew."""

from __future__ import annotations

import json

import pytest

from muniment_server.admin import development
from muniment_server.admin.connection import connect_operator
from muniment_server.admin.host_keys import accepts_host_key

ODD = ["", "null", "[]", "5", '"text"', "{}", '{"host_key": null}', '{"host_key": ["x"]}', "[" * 100_000, "\x00"]


@pytest.mark.parametrize("text", [*(text.encode() for text in ODD), b"\xff"], ids=lambda text: repr(text[:20]))
def test_a_file_with_anything_else_is_written_anew(database, tmp_path, text):
    file = tmp_path / development.FILE
    file.write_bytes(text)

    key = development.write_credentials(tmp_path, address="here", admin=database.admin)

    assert json.loads(file.read_text()) == {"address": "here", "host_key": key}
    with connect_operator(database.admin) as operator:
        assert accepts_host_key(operator, key)


def test_a_valid_key_is_kept(database, tmp_path):
    written = [development.write_credentials(tmp_path, address="here", admin=database.admin) for _ in range(2)]

    assert written[0] == written[1]
