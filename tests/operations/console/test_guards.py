"""What the console refuses before it reads anything, and how it starts."""

from __future__ import annotations

import os
import pty
import re
import socket
import ssl
import subprocess
from http.client import HTTPSConnection

import pytest

from muniment import Classification
from tests.operations.console.consoles import PAGES, PASSWORD, Console, signed_in
from tests.support.certificates import make
from tests.support.commands import COMMAND, environment_in, run, wait_until
from tests.support.each import for_each
from tests.support.ports import free_port


@pytest.fixture
def nothing_is_read(host, ada):
    """Afterwards, no one has looked at an agent: that would have opened sessions."""
    yield ada.agent_id
    assert list(host.list_sessions(ada.agent_id, include_closed=True)) == []


@for_each(
    "name", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", "{name}.", "", "user@{name}"]
)
def test_another_name_is_refused(console, nothing_is_read, name):
    """Such as one that an attacker has pointed to this machine, to read the pages as his own."""
    named = name.format(name=console.name, port=console.port)

    refused = console.get(f"/agent?id={nothing_is_read}", host=named)

    assert (refused.status, b"--host" in refused.body) == (421, True)


def test_two_names_are_refused(console):
    assert console.get("/", [("host", console.name)]).status in (400, 421)


@for_each("name", ["localhost:{port}", "LOCALHOST:{port}", "[::1]:{port}"])
def test_each_name_of_this_machine_is_one_of_the_console(console, name):
    assert console.get("/", host=name.format(port=console.port)).status == 200


@for_each("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"])
def test_nothing_but_reading_is_possible(console, nothing_is_read, method):
    refused = console.get(f"/agent?id={nothing_is_read}", method=method)

    assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD")


@for_each(
    "credential",
    [
        None,
        "",
        "Basic",
        "Basic !",
        "Basic YXVkaXRvcg==",
        f"Bearer {PASSWORD}",
        PASSWORD,
        signed_in("")[1],
        signed_in(PASSWORD[:-1])[1],
        signed_in(PASSWORD + "a")[1],
        signed_in("pässword")[1],
    ],
)
def test_without_the_password_no_page_is_shown(console, nothing_is_read, credential):
    headers = [] if credential is None else [("authorization", credential)]

    for path in (f"/agent?id={nothing_is_read}", *PAGES):
        refused = console.send("GET", path, headers)

        assert refused.status == 401
        assert refused.headers["www-authenticate"].startswith("Basic ")
        assert refused.body == b"sign in with the password of the console, and any name\n"


def test_the_host_key_is_no_password(console, host_key):
    assert console.send("GET", "/", [signed_in(host_key)]).status == 401
    assert console.send("GET", "/", [signed_in(), signed_in("other")]).status == 401


@for_each("how", [("no-cors", "image"), ("cors", "empty"), ("navigate", "iframe"), ("navigate", "object")])
def test_a_page_of_another_site_cannot_have_one_read(console, nothing_is_read, how):
    mode, to = how
    for site in ("cross-site", "same-site"):
        headers = [("sec-fetch-site", site), ("sec-fetch-mode", mode), ("sec-fetch-dest", to)]

        assert console.get(f"/agent?id={nothing_is_read}", headers).status == 403


@for_each("site", ["cross-site", "none", "same-origin"])
def test_links_to_the_console_may_be_followed(console, site):
    headers = [("sec-fetch-site", site), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")]

    assert console.get("/", headers).status == 200


@for_each("header", [("sec-purpose", "prefetch;prerender"), ("purpose", "prefetch")])
def test_no_page_is_read_ahead(console, nothing_is_read, header):
    """The audit log would show a look that was never taken."""
    assert console.get(f"/agent?id={nothing_is_read}", [header]).status == 503


def test_every_answer_forbids_scripts_frames_and_copies_and_sets_no_cookie(console):
    answers = [console.get(path) for path in PAGES]
    answers += [console.send("GET", "/"), console.get("/", host="evil.example"), console.get("/", method="POST")]

    for answer in answers:
        headers = {name.lower(): value for name, value in answer.headers.items()}
        directives = dict(each.strip().split(" ", 1) for each in headers["content-security-policy"].split(";"))
        assert directives["default-src"] == directives["frame-ancestors"] == directives["base-uri"] == "'none'"
        assert re.fullmatch(r"'sha256-[\w+/=]+'", directives.get("style-src", "'sha256-x'"))
        assert not {"script-src", "img-src", "connect-src"} & {*directives}
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
        assert "set-cookie" not in headers
        assert not any(name.startswith("access-control") for name in headers)


def test_a_proxy_calls_it_by_its_own_name(dev, host_key):
    with Console(dev.folder, dev.address, host_key, "--host", "console.example") as console:
        assert [console.get("/", host=name).status for name in ("console.example", "console.example:443")] == [200, 421]


def test_it_shows_its_certificate_at_other_addresses(dev, host_key, folder):
    make(folder, "console", "-addext", "subjectAltName=IP:127.0.0.1")
    options = ("--cert", str(folder / "console.pem"), "--key", str(folder / "console.key"))
    password = folder / "password"
    password.touch(mode=0o600)
    password.write_text(PASSWORD)
    port = free_port()
    listen = ("--listen", f"0.0.0.0:{port}", "--host", f"127.0.0.1:{port}", "--password-file", str(password))
    environment = environment_in(folder, MUNIMENT_ADDRESS=dev.address, MUNIMENT_HOST_KEY=host_key)
    with subprocess.Popen(
        [*COMMAND, "console", *listen, *options], env=environment, stderr=subprocess.DEVNULL
    ) as process:
        try:
            wait_until(lambda: _is_open(port), "the console listens")
            context = ssl.create_default_context(cafile=str(folder / "console.pem"))
            connection = HTTPSConnection("127.0.0.1", port, context=context)
            connection.request("GET", "/", headers=dict([signed_in()]))
            assert connection.getresponse().status == 200
            connection.close()
        finally:
            process.terminate()


def _is_open(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


def test_a_terminal_shows_a_new_password_that_opens_the_pages(dev, host_key):
    console = Console(dev.folder, dev.address, host_key)
    shown, end = pty.openpty()
    environment = environment_in(dev.folder, MUNIMENT_ADDRESS=dev.address, MUNIMENT_HOST_KEY=host_key)
    with subprocess.Popen([*COMMAND, "console", "--listen", console.name], env=environment, stderr=end) as process:
        try:
            os.close(end)
            output = ""
            while (found := re.search(r"Password, until it ends: (\S+) \(any name\)\r?\n", output)) is None:
                output += os.read(shown, 4096).decode()
            assert [console.send("GET", "/", [signed_in(each)]).status for each in (found[1], PASSWORD)] == [200, 401]
            assert host_key not in output
        finally:
            process.terminate()
            process.wait()
            os.close(shown)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "there is no terminal to show a password on"),
        (("--listen", "0.0.0.0:8090"), "refusing to listen in the clear on 0.0.0.0:8090"),
        (("--listen", "192.0.2.1:8090"), "refusing to listen in the clear"),
        (("--listen", "127.0.0.1:0"), "--listen needs a host and a port"),
        (("--listen", "unix:/tmp/x"), "--listen needs a host and a port"),
        (("--cert", "x.pem"), "--cert and --key require each other"),
        (("--metrics", "127.0.0.1:9464"), "--metrics needs a socket"),
    ],
)
def test_a_mistake_in_the_options_is_named(folder, options, message):
    done = run(folder, "console", *options, MUNIMENT_ADDRESS="127.0.0.1:1", MUNIMENT_HOST_KEY="mun_h_x")

    assert (done.returncode, message in done.stderr) == (1, True), done.stderr


def test_a_password_that_others_can_read_or_that_is_short_is_refused(folder):
    file = folder / "password"
    for text, mode, message in ((PASSWORD, 0o644, "others can read"), ("short", 0o600, "at least 16 characters")):
        file.write_text(text)
        file.chmod(mode)

        done = run(
            folder, "console", "--password-file", str(file), MUNIMENT_ADDRESS="127.0.0.1:1", MUNIMENT_HOST_KEY="mun_h_x"
        )

        assert (done.returncode, message in done.stderr) == (1, True), done.stderr


def test_a_key_that_cannot_see_all_events_compares_no_export(dev, key_of, folder):
    key, file = key_of("development", Classification.CONFIDENTIAL), folder / "password"
    file.touch(mode=0o600)
    file.write_text(PASSWORD)
    options = ("--password-file", str(file), "--export", str(folder / "audit.jsonl"))

    done = run(folder, "console", *options, MUNIMENT_ADDRESS=dev.address, MUNIMENT_HOST_KEY=key)

    assert (done.returncode, "there may be events above its ceiling" in done.stderr) == (1, True), done.stderr


def test_without_the_extra_it_says_what_to_install(monkeypatch, folder):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    done = run(folder, "console")

    assert "this command needs the extra `console`" in done.stderr
