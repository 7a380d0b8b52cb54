"""The tour can fail: what it reads, runs and compares tells right from wrong."""

from __future__ import annotations

import pytest

from tests.tools.tour import shell
from tests.tools.tour.readme import Step, normal, section, steps

_PAGE = """
# Page

## First

```sh
one
```
```text
shown
```
```sh buf
two
```
```text buf
shown by buf
```
```sh grpcurl
three
```

## Second

```python
four
```
"""


def test_blocks_are_read_in_order_each_with_what_it_shows():
    assert list(steps(section("First", _PAGE), "buf")) == [
        Step("sh", "", "one\n", "shown\n"),
        Step("sh", "buf", "two\n", "shown by buf\n"),
    ]
    assert list(steps(_PAGE)) == [Step("sh", "", "one\n", "shown\n"), Step("python", "", "four\n", None)]


@pytest.mark.parametrize(
    ("one", "another"),
    [
        ('{"key":  "plan",\n "a": 1}', '{"a": 1, "key": "plan"}'),
        ("a4ab2478-d9c5-41d4-b8a5-952d9bac125f", "af55bee5-33bd-4519-8795-0f4cf5cefcfa"),
        ('"2026-11-22T02:21:19.340908Z"', '"2027-01-01T00:00:00Z"'),
        ("EGESHMQkRtWkLNoh4z-LmwAAAAE", "f0HILpU_RRGcFWe-mTWuLQAAAAE"),
        ("on 127.0.0.1:50051", "on 127.0.0.1:42585"),
        ('  "key":   "plan" \n', '  "key": "plan"'),
    ],
)
def test_what_differs_from_day_to_day_does_not_count(one, another):
    assert normal(one) == normal(another)


@pytest.mark.parametrize(
    ("one", "another"),
    [
        ('{"level": "PUBLIC"}', '{"level": "INTERNAL"}'),
        ("plan\tINTERNAL", "plan\tPUBLIC"),
        ("one line", "one line\nand another"),
        ("EGESHMQkRtWkLNoh4z-LmwAAAAE", ""),
    ],
)
def test_everything_else_does(one, another):
    assert normal(one) != normal(another)


def test_a_failure_anywhere_in_a_block_shows_and_the_next_block_goes_on(tmp_path):
    texts = [
        "false; true\n",
        "true\n",
        "false | cat\n",
        "x=$(false); echo on\n",
        "f() { false; true; }; f\n",
        "echo $x.\n",
    ]

    ran = shell.run([Step("sh", "", text, None) for text in texts], tmp_path, {"PATH": "/usr/bin:/bin"})

    assert [one.failed for one in ran] == [True, False, True, True, True, False]
    assert [one.output for one in ran] == ["", "", "", "on\n", "", ".\n"]
