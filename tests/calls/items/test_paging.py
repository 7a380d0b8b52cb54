"""The sizes of pages and results, and etags."""

from __future__ import annotations

from uuid import UUID

import pytest

from muniment_server.domain.errors import InvalidArgument
from muniment_server.domain.ids import ItemId
from muniment_server.domain.items import Version
from muniment_server.items import paging

VERSION = Version(ItemId(UUID("0af8a6cc-3f3d-4a05-9d3a-6f8ed4f3c7a1")), 7)


@pytest.mark.parametrize(("asked", "given"), [(0, 50), (1, 1), (250, 250), (251, 250), (2**31 - 1, 250)])
def test_page_size(asked, given):
    assert paging.page_size(asked) == given


@pytest.mark.parametrize(("asked", "given"), [(0, 10), (1, 1), (100, 100), (101, 100), (2**31 - 1, 100)])
def test_max_results(asked, given):
    assert paging.max_results(asked) == given


def test_an_etag_gives_back_the_version_it_names():
    assert paging.version_of(paging.etag(VERSION)) == VERSION


def test_etags_of_different_versions_differ():
    versions = [VERSION, Version(VERSION.item_id, 8), Version(ItemId(UUID(int=VERSION.item_id.int + 1)), 7)]

    assert len(set(map(paging.etag, versions))) == 3


def test_no_etag_means_none_is_asked_for():
    assert paging.version_of("") is None


@pytest.mark.parametrize(
    "text",
    [
        "x", "*", '"abc"', "A" * 26, "A" * 28, paging.etag(VERSION) + "=", "_" * 27, "நினைவு",
        paging.etag(Version(VERSION.item_id, 2**31)),
    ],
)  # fmt: skip
def test_a_malformed_etag_is_refused(text):
    with pytest.raises(InvalidArgument) as caught:
        paging.version_of(text)

    assert [violation.field for violation in caught.value.violations] == ["etag"]
