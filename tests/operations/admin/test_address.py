"""The address a server holds."""

from __future__ import annotations

import pytest

from muniment_server.runtime.address import AddressInUse, reserve


def test_a_file_that_is_no_socket_is_left_alone(tmp_path):
    file = tmp_path / "notes"
    file.write_text("kept")

    with pytest.raises(AddressInUse), reserve(f"unix:{file}"):
        pytest.fail("it was taken")

    assert file.read_text() == "kept"
