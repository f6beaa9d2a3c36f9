"""The streaming reader gives what `json.load` gives, and says clearly what is wrong with a file."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpredict.model import KpredictError
from kpredict.verify.events import EventFile

TRACES = Path(__file__).parents[2] / "fixtures" / "traces"

_scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
_values = st.recursive(
    _scalars, lambda v: st.lists(v) | st.dictionaries(st.text(), v), max_leaves=8
)
_events = st.lists(st.dictionaries(st.text(), _values, min_size=1), max_size=6)
_header = st.dictionaries(st.text().filter(lambda k: k != "traceEvents"), _values, max_size=3)


@given(_header, _events, _header, st.integers(1, 40), st.sampled_from([None, 1]))
@settings(max_examples=60, deadline=None)
def test_any_chunk_size_gives_what_json_gives(
    tmp_path_factory: pytest.TempPathFactory,
    before: dict[str, object],
    events: list[dict[str, object]],
    after: dict[str, object],
    chunk: int,
    indent: int | None,
) -> None:
    whole = {**before, "traceEvents": events, **after}
    path = tmp_path_factory.mktemp("t") / "t.json"
    path.write_text(json.dumps(whole, indent=indent))
    file = EventFile(path, chunk)
    assert list(file) == events
    assert file.header == {k: v for k, v in whole.items() if k != "traceEvents"}


@pytest.mark.parametrize("path", sorted(TRACES.glob("*.gz")), ids=lambda p: p.name)
def test_real_traces(path: Path) -> None:
    with gzip.open(path, "rt") as whole:
        expected = json.load(whole)
    file = EventFile(path, 4096)
    assert list(file) == expected["traceEvents"]
    assert file.header.keys() | {"traceEvents"} == expected.keys()


def test_what_profilers_write_and_json_forbids(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(b'\xef\xbb\xbf[{"ts": NaN, "name": "a\tb"}, null, {"name": "\xff"}]\n')
    first, second = EventFile(path)
    assert first["name"] == "a\tb"
    assert first["ts"] != first["ts"]
    assert second == {"name": "�"}


def failure(path: Path) -> str:
    with pytest.raises(KpredictError) as caught:
        list(EventFile(path, 512))
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("Traceback (most recent call last)", "is not JSON"),
        ("12", "is not JSON"),
        ("{}", "has no list of trace events"),
        ('{"results": [1, 2]}', "has no list of trace events"),
        ('{"traceEvents": 3}', "has no list of trace events"),
        ("[1, 2, 3]", "does not hold trace events"),
        ('{"traceEvents": [{"a": 1}, {"a": 2', "cut short: it ends after 1 events"),
        ('{"traceEvents": [{"a": 1}, {"a": "tex', "cut short: it ends after 1 events"),
        ('{"traceEvents": [{"a": 1}', "cut short: it ends after 1 events"),
        ('{"traceEvents": [{"a": 1}]', "cut short: it ends after 1 events"),
        ('{"traceEvents": [{"a": 1} {"a": 2}]}', "damaged at character 26, after 1 events"),
        ('{"traceEvents": [{"a": 1}, {"a" 2}]}', "damaged at character 32, after 1 events"),
        ('{"traceEvents": [{"a": 1}]} {', "damaged at character 28, after 1 events"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    assert says in failure(path)


def test_a_trace_cut_anywhere_is_an_error(tmp_path: Path) -> None:
    whole = gzip.decompress((TRACES / "hta_triton_a100.json.gz").read_bytes()).rstrip()
    path = tmp_path / "t.json"
    for size in range(10, len(whole), 397):
        path.write_bytes(whole[:size])
        assert "cut short" in failure(path), size


def test_a_gzip_cut_anywhere_is_an_error(tmp_path: Path) -> None:
    whole = (TRACES / "hta_simple_add_a100.json.gz").read_bytes()
    path = tmp_path / "t.json.gz"
    for size in range(2, len(whole), 191):
        path.write_bytes(whole[:size])
        assert "cut short" in failure(path), size


def test_a_gzip_with_wrong_bytes(tmp_path: Path) -> None:
    whole = bytearray((TRACES / "hta_simple_add_a100.json.gz").read_bytes())
    whole[len(whole) // 2] ^= 0xFF
    path = tmp_path / "t.json.gz"
    path.write_bytes(bytes(whole))
    assert failure(path)


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    assert "cannot be opened" in failure(tmp_path / "none.json")
    assert "cannot be opened" in failure(tmp_path)
