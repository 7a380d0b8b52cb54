"""Where the server is and who calls, when the program does not say."""

from __future__ import annotations

import json

import pytest

import muniment
from muniment.settings import Settings, find_host_settings, find_session_settings, find_settings
from tests.support.examples import HOST_KEY, TOKEN


@pytest.fixture
def file(tmp_path):
    """A development file. Its server is `there`."""
    path = tmp_path / ".muniment" / "development.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"address": "there", "host_key": HOST_KEY, "more": 1}))
    return path


def test_settings_do_not_show_the_credential():
    assert [repr(Settings("here", host_key=HOST_KEY)), repr(Settings("here", token=TOKEN))] == [
        "Settings(address='here', ca=None)"
    ] * 2


def test_the_environment_names_a_host(file):
    environment = {"MUNIMENT_ADDRESS": "here", "MUNIMENT_HOST_KEY": f"{HOST_KEY}\n", "MUNIMENT_TOKEN": ""}

    assert Settings("here", host_key=HOST_KEY) == find_settings(environment, file)


def test_the_environment_names_a_session(file):
    environment = {"MUNIMENT_ADDRESS": "here", "MUNIMENT_TOKEN": TOKEN}

    assert Settings("here", token=TOKEN) == find_settings(environment, file)


def test_of_two_credentials_the_host_key_counts(file):
    environment = {"MUNIMENT_ADDRESS": "here", "MUNIMENT_TOKEN": TOKEN, "MUNIMENT_HOST_KEY": HOST_KEY}

    assert Settings("here", host_key=HOST_KEY) == find_settings(environment, file)
    assert Settings("here", host_key=HOST_KEY) == find_host_settings(environment, file)
    assert Settings("here", token=TOKEN) == find_session_settings(environment)


def test_a_host_is_never_called_with_a_token(file):
    environment = {"MUNIMENT_ADDRESS": "there", "MUNIMENT_TOKEN": TOKEN}

    assert Settings("there", host_key=HOST_KEY) == find_host_settings(environment, file)
    with pytest.raises(ValueError, match="neither is set"):
        find_host_settings(environment | {"MUNIMENT_ADDRESS": "here"}, file)


def test_the_address_of_the_development_file_may_be_set_without_its_key(file):
    assert Settings("there", host_key=HOST_KEY) == find_settings({"MUNIMENT_ADDRESS": "there"}, file)


def test_a_session_needs_its_token():
    with pytest.raises(ValueError, match="neither is set: see MUNIMENT_ADDRESS, MUNIMENT_TOKEN"):
        find_session_settings({"MUNIMENT_ADDRESS": "here", "MUNIMENT_HOST_KEY": HOST_KEY})


@pytest.mark.parametrize("ca", ["ca.pem\n", "", None])
def test_an_authority_is_for_either(file, ca):
    environment = {} if ca is None else {"MUNIMENT_TLS_CA": ca}
    named = "ca.pem" if ca else None

    assert Settings("there", host_key=HOST_KEY, ca=named) == find_settings(environment, file)
    environment |= {"MUNIMENT_ADDRESS": "here", "MUNIMENT_TOKEN": TOKEN}
    assert Settings("here", token=TOKEN, ca=named) == find_settings(environment, file)


def test_the_development_file_comes_second(file):
    assert Settings("there", host_key=HOST_KEY) == find_settings({}, file)


def test_it_is_in_the_data_directory_that_the_environment_names(file, tmp_path, monkeypatch):
    named = {"MUNIMENT_DATA_DIR": f"{file.parent}\n"}
    monkeypatch.chdir("/")

    assert Settings("there", host_key=HOST_KEY) == find_settings(named)
    assert Settings("there", host_key=HOST_KEY) == find_settings(named | {"MUNIMENT_ADDRESS": "there"})
    assert Settings("here", token=TOKEN) == find_settings(named | {"MUNIMENT_ADDRESS": "here", "MUNIMENT_TOKEN": TOKEN})

    monkeypatch.chdir(tmp_path)
    assert Settings("there", host_key=HOST_KEY) == find_settings({"MUNIMENT_DATA_DIR": ""})
    with pytest.raises(ValueError, match="no server is named"):
        find_settings({"MUNIMENT_DATA_DIR": str(tmp_path)})


@pytest.mark.parametrize(
    "environment",
    [
        {"MUNIMENT_ADDRESS": "here"},
        {"MUNIMENT_TOKEN": TOKEN},
        {"MUNIMENT_HOST_KEY": HOST_KEY},
    ],
)
def test_half_an_environment_is_not_filled_up_from_the_file(file, environment):
    """A key is never sent to a server that it is not for."""
    with pytest.raises(ValueError, match="MUNIMENT_ADDRESS") as caught:
        find_settings(environment, file)

    assert TOKEN not in str(caught.value)
    assert HOST_KEY not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"address": "there"}',
        '{"address": "", "host_key": "k"}',
        '{"address": ["there"], "host_key": "k"}',
        '{"address": "there", "host_key": null}',
        "null",
        "[" * 100_000,
    ],
)
def test_a_damaged_file_is_named(file, text):
    file.write_text(text)

    with pytest.raises(ValueError, match=r"development\.json"):
        find_settings({}, file)


def test_with_nothing_at_all_the_way_out_is_shown(tmp_path):
    with pytest.raises(ValueError, match="muniment serve --dev"):
        find_settings({}, tmp_path / "none.json")


def test_connect_looks_them_up(running, tmp_path, monkeypatch):
    for name in ("MUNIMENT_ADDRESS", "MUNIMENT_TOKEN", "MUNIMENT_HOST_KEY", "MUNIMENT_TLS_CA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".muniment").mkdir()
    written = {"address": running.address, "host_key": HOST_KEY}
    (tmp_path / ".muniment/development.json").write_text(json.dumps(written))

    with muniment.connect() as host:
        assert isinstance(host, muniment.HostClient)
        host.get_agent("ada")

    monkeypatch.setenv("MUNIMENT_ADDRESS", running.address)
    monkeypatch.setenv("MUNIMENT_TOKEN", TOKEN)
    with muniment.connect() as session:
        assert isinstance(session, muniment.SessionClient)
        session.get_memory("tea")

    sent = [each.metadata["authorization"] for each in running.scripted.asked]
    assert [f"Bearer {HOST_KEY}", f"Bearer {TOKEN}"] == sent


def test_connect_host_and_connect_session_each_take_their_own_of_two(running, monkeypatch):
    for name, value in (("ADDRESS", running.address), ("TOKEN", TOKEN), ("HOST_KEY", HOST_KEY), ("TLS_CA", "")):
        monkeypatch.setenv(f"MUNIMENT_{name}", value)

    with muniment.connect_host() as host, muniment.connect_session() as session:
        host.get_agent("ada")
        session.get_memory("tea")

    sent = [each.metadata["authorization"] for each in running.scripted.asked]
    assert [f"Bearer {HOST_KEY}", f"Bearer {TOKEN}"] == sent
