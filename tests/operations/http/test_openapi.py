"""The OpenAPI file is valid and complete, and agrees with the server."""

from __future__ import annotations

import subprocess
import sys
from importlib import resources

import pytest
from google.protobuf import json_format
from google.protobuf.message_factory import GetMessageClass
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import validate

from muniment_http.contract import methods, path_of
from tests.rpcs import RPCS, World
from tests.support.examples import SESSION_ID


@pytest.fixture(scope="module")
def openapi(gateway):
    answer = gateway.send("GET", "/openapi.json")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    return answer.json


def test_it_is_valid(openapi):
    validate(openapi)


def test_it_has_every_method_and_every_field(openapi):
    schemas = openapi["components"]["schemas"]

    assert set(openapi["paths"]) == {path_of(method) for method in methods()}
    for method in methods():
        for message in (method.input_type, method.output_type):
            assert set(schemas[message.name]["properties"]) == {field.json_name for field in message.fields}


@pytest.mark.parametrize("method", list(methods()), ids=lambda method: method.name)
def test_requests_and_responses_of_the_server_are_valid(openapi, method):
    row = RPCS[method.name]
    request = GetMessageClass(method.input_type)(**row.request(World("word", SESSION_ID)))

    for message in (request, row.answer):
        schema = {"$ref": f"#/components/schemas/{message.DESCRIPTOR.name}", "components": openapi["components"]}
        OAS31Validator(schema).validate(json_format.MessageToDict(message))


@pytest.mark.parametrize("wrong", [{"key": 7}, {"key": "k", "expireTme": "2030-01-01T00:00:00Z"}, {"tags": ["a"] * 33}])
def test_a_request_that_the_server_refuses_is_not_valid(openapi, wrong):
    schema = {"$ref": "#/components/schemas/SaveMemoryRequest", "components": openapi["components"]}

    assert not OAS31Validator(schema).is_valid(wrong)


def test_a_client_that_is_generated_from_it_calls(gateway, host_key, tmp_path):
    """By openapi-python-client, which knows nothing else of Muniment."""
    made = tmp_path / "made"
    generate = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none", "--output-path", str(made)]
    file = resources.files("muniment_http").joinpath("openapi.json")
    generated = subprocess.run([*generate, "--path", str(file)], capture_output=True, text=True, check=False)

    called = subprocess.run(
        [sys.executable, "-c", _CALLS, f"http://127.0.0.1:{gateway.port}", host_key],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert "Endpoint" not in generated.stdout + generated.stderr, "it warns of what it cannot generate"
    assert called.stdout.split() == ["ship", "MEMORY_NOT_FOUND"], called.stderr


_CALLS = """
import sys
from made import AuthenticatedClient
from made.api.memory_service import get_memory as get
from made.api.memory_service import save_memory as save
from made.api.session_service import open_session
from made.models import Classification, GetMemoryRequest, OpenSessionRequest, SaveMemoryRequest

base_url, host_key = sys.argv[1:]
host = AuthenticatedClient(base_url=base_url, token=host_key)
request = OpenSessionRequest(agent_id="alice", taint=Classification.CLASSIFICATION_INTERNAL)
opened = open_session.sync(client=host, body=request)
session = AuthenticatedClient(base_url=base_url, token=opened.token)
save.sync(client=session, body=SaveMemoryRequest(key="generated", content="ship"))
print(get.sync(client=session, body=GetMemoryRequest(key="generated")).memory.content)
error = get.sync(client=session, body=GetMemoryRequest(key="absent"))
print(error.details[0].debug.reason.value)
"""
