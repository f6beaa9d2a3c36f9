"""The language of `--input` and of directives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpredict.model import KpredictError
from kpredict.source.inputs import (
    DTYPES,
    DictSpec,
    ListSpec,
    TensorSpec,
    ValueSpec,
    join,
    parse_directive,
    parse_input,
    resolve,
    split_top,
    unknown_dims,
)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("x=f32[64,128]", TensorSpec("float32", (64, 128))),
        ("x=f32[]", TensorSpec("float32", ())),
        ("x=bf16[1_000]", TensorSpec("bfloat16", (1000,))),
        ("x=float16[2,3](1,2)@cpu", TensorSpec("float16", (2, 3), (1, 2), "cpu")),
        ("x=i64[8]<50257", TensorSpec("int64", (8,), high=50257)),
        ("x=f32[3]@grad", TensorSpec("float32", (3,), grad=True)),
        ("x=f32[3]@pinned", TensorSpec("float32", (3,), device="cpu", pinned=True)),
        ("x=f32[1,2,3,4]@channels_last", TensorSpec("float32", (1, 2, 3, 4), channels_last=True)),
        ("x=f32[b,2*n]", TensorSpec("float32", ("b", "2*n"))),
        ("n==3", ValueSpec(3)),
        ("n=3", ValueSpec(3)),
        ("rate=1e-3", ValueSpec(0.001)),
        ("flag=True", ValueSpec(True)),
        ("mask=None", ValueSpec(None)),
        ('act="relu"', ValueSpec("relu")),
        ("act==relu", ValueSpec("relu")),
        ("act=relu", ValueSpec("relu")),
        ("size==(1, 2)", ValueSpec((1, 2))),
        (
            "xs=[f32[3], f32[4]]",
            ListSpec((TensorSpec("float32", (3,)), TensorSpec("float32", (4,)))),
        ),
        ("p=(f32[3], 2)", ListSpec((TensorSpec("float32", (3,)), ValueSpec(2)), is_tuple=True)),
        (
            "b={ids: i64[8,128], 'n': 3}",
            DictSpec((("ids", TensorSpec("int64", (8, 128))), ("n", ValueSpec(3)))),
        ),
    ],
)
def test_a_spec_is_read(text: str, spec: object) -> None:
    assert parse_input(text)[1] == spec


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("x", "is not NAME=SPEC"),
        ("=f32[3]", "is not NAME=SPEC"),
        ("x=f32", "has no shape"),
        ("x=f23[3]", "no dtype is called 'f23'. Did you mean f32?"),
        ("x=f32[3", "is no tensor and no value"),
        ("x=f32[3] 4", "is left over"),
        ("x=f32[2,3](1)", "2 sizes but 1 strides"),
        ("x=f32[3]@gpu", "no mark is called 'gpu'"),
        ("x=f32[3]@channels_last", "needs 4 or 5 dimensions"),
        ("x=[f32[3]", "']' is missing"),
        ("x={ids f32[3]}", "a dict is {name: spec, ...}"),
        ("x=", "nothing follows the name"),
    ],
)
def test_a_fault_is_named(text: str, fault: str) -> None:
    with pytest.raises(KpredictError) as error:
        parse_input(text)
    assert fault in str(error.value)


def test_dotted_names_nest() -> None:
    pairs = [
        parse_input(t) for t in ("xs.1=f32[4]", "xs.0=f32[3]", "b.ids=i64[2]", "b.deep.n=3", "k=1")
    ]
    found = join(pairs)
    assert str(found["xs"]) == "[f32[3], f32[4]]"
    assert str(found["b"]) == "{ids: i64[2], deep: {n: 3}}"
    assert found["k"] == ValueSpec(1)


def test_a_directive_holds_several() -> None:
    found = parse_directive("x=f32[64,128], mask=bool[64,128], p=(1, 2)")
    assert list(found) == ["x", "mask", "p"]
    assert found["mask"] == TensorSpec("bool", (64, 128))


def test_named_sizes_are_arithmetic() -> None:
    spec = parse_input("x=f32[b,2*n,n-1,n//2]")[1]
    assert unknown_dims(spec, {"b": 2}) == ("n",)
    assert resolve(spec, {"b": 2, "n": 8}) == TensorSpec("float32", (2, 16, 7, 4))
    with pytest.raises(KpredictError, match="--dim n=N"):
        resolve(spec, {"b": 2})


@given(
    st.sampled_from(sorted(set(DTYPES.values()))),
    st.lists(st.integers(0, 4096), max_size=5),
    st.booleans(),
)
def test_what_is_written_is_read_again(dtype: str, shape: list[int], grad: bool) -> None:
    spec = TensorSpec(dtype, tuple(shape), grad=grad)
    assert parse_input(f"x={spec}")[1] == spec


@given(st.text(alphabet="xf32[](){},:=<@'\" \\\n0", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        name, _ = parse_input(text)
    except KpredictError:
        return
    assert name


def test_splitting_respects_brackets_and_quotes() -> None:
    assert split_top("a=f32[1,2], b='x,y', c=(1,2)") == ["a=f32[1,2]", " b='x,y'", " c=(1,2)"]
