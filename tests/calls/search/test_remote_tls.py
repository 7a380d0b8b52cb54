"""A model at an https address: whose certificate does not hold gets no text."""

from __future__ import annotations

import shutil
import ssl

import pytest

from muniment_server.domain.classification import Label
from muniment_server.embedder.remote.client import RemoteModelError
from tests.support.certificates import make
from tests.support.embedding_server import embedding_server

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make certificates with")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """An authority, certificates by it for this host and for another one, and one that is signed by itself."""
    place = tmp_path_factory.mktemp("certificates")
    authority = ("-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key")
    make(place, "ca", *authority)
    make(place, "this", *signed, "-addext", "subjectAltName=IP:127.0.0.1")
    make(place, "another", *signed, "-addext", "subjectAltName=DNS:api.example,IP:127.0.0.2")
    make(place, "itself", "-addext", "subjectAltName=IP:127.0.0.1")
    return place


@pytest.fixture
def serving_as(certificates, monkeypatch):
    """A server with one of the certificates. The authority is trusted."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "ca.pem"))

    def serve(name):
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificates / f"{name}.pem", certificates / f"{name}.key")
        return embedding_server(tls=tls)

    return serve


def test_a_server_with_a_certificate_for_its_host_by_a_trusted_authority_is_asked(serving_as):
    with serving_as("this") as server:
        server.model().embed_query("text", Label.PUBLIC, 5)

        assert server.texts == ["text"]


@pytest.mark.parametrize("name", ["itself", "another"])
def test_a_server_is_sent_nothing_unless_a_trusted_authority_has_signed_its_certificate_for_its_host(serving_as, name):
    """Not even the first constant sentences, with which the key would be sent."""
    with serving_as(name) as server:
        with pytest.raises(RemoteModelError, match=r"TLS failed \(CERTIFICATE_VERIFY_FAILED\)"):
            server.new_model().calibrate()

        assert server.requests == []
