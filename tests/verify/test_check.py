"""A prediction against a measurement: what is said, in every format, and kept in a bundle."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from kpredict.model import (
    Access,
    Assumption,
    Basis,
    Count,
    Entry,
    Failure,
    Kind,
    KpredictError,
    Launch,
    Mode,
    Phase,
    Phases,
    Plan,
    Report,
    Span,
    Tensor,
    Unknown,
)
from kpredict.targets import target
from kpredict.verify import render_data, render_text
from kpredict.verify.bundle import Bundle, Machine, MeasuredEntry, MeasuredPhase, parse_bundle
from kpredict.verify.check import Verification, check
from kpredict.verify.measured import Measured, Timing

MACHINE = Machine("NVIDIA H200", (9, 0), 132, "570.1", "13.0", "2.13.0", "3.4", "3.12.1", "0.1.0")
ARRAY = Access.of(Tensor((1000, 1000), (1000, 1), "float32"))


def predicted(name: str, op: str, **more: object) -> Launch:
    return replace(
        Launch(Kind.KERNEL, name, ops=(op,), reads=(ARRAY,), writes=(ARRAY,),
               lines=(Span("f.py", 5),)),
        **more,
    )  # fmt: skip


def found(*launches: Launch, time: float | None = 10.0) -> MeasuredPhase:
    timings = tuple(
        Timing(5.0 * i, 5.0 * i, 4.0, 0, 7, ("float32[8](1)",)) for i in range(len(launches))
    )
    return MeasuredPhase(Measured(Plan(launches), timings), (), time, 50)


def seen(name: str, op: str, kind: Kind = Kind.KERNEL, count: int = 1) -> Launch:
    return Launch(kind, name, Count.exactly(count), basis=Basis.MEASURED, ops=(op,),
                  grid=(8, 1, 1), block=(128, 1, 1),
                  expected=count if kind is Kind.LIBRARY else None)  # fmt: skip


ADD = predicted("vectorized_elementwise_kernel", "aten.add.Tensor")
RELU = predicted("vectorized_elementwise_kernel", "aten.relu.default")
SEEN_ADD = seen("vectorized_elementwise_kernel", "aten.add")
SEEN_RELU = seen("vectorized_elementwise_kernel", "aten.relu")


def report(plan: Plan, **more: object) -> Report:
    entry = Entry("dir/f.py", "f", 4, ("a=f32[8]",), {Mode.EAGER: Phases(plan)})
    return Report(target("h200"), (replace(entry, **more),))


def bundle(phase: MeasuredPhase, **more: object) -> Bundle:
    entry = MeasuredEntry("/else/f.py", "f", 4, modes={Mode.EAGER: {Phase.FORWARD: phase}})
    return Bundle(MACHINE, (replace(entry, **more),))


def verified(plan: Plan, *launches: Launch) -> Verification:
    return check(report(plan), bundle(found(*launches)))


def test_agreement() -> None:
    result = verified(Plan((ADD, RELU)), SEEN_ADD, SEEN_RELU)
    assert result.exit_code == 0
    assert result.checked[0].bandwidth == pytest.approx(16e6 / 10 / 1e3)
    text = render_text.text(result)
    assert "1 of 1 plans agree; 2 of 2 launches as predicted (100.0%)." in text
    assert "NVIDIA H200, torch 2.13.0, CUDA 13.0, driver 570.1; predicted for h200" in text
    assert "paste" not in text


def test_disagreement_is_pasted_with_its_arrays() -> None:
    result = verified(Plan((ADD, RELU)), SEEN_ADD, seen("reduce_kernel", "aten.sum"))
    assert result.exit_code == 1  # the total is right, but not the count of either op
    result = verified(Plan((ADD, RELU)), SEEN_ADD)
    assert result.exit_code == 1
    text = render_text.text(result)
    assert "2, not 1" in text
    assert "missing       vectorized_elementwise_kernel [aten.relu.default] line 5  |  -" in text
    assert "aten.relu.default: missing" in text
    assert "reads float32 [1000, 1000] strides [1000, 1]" in text
    assert "triton 3.4" in text
    extra = verified(Plan((ADD,)), SEEN_ADD, seen("reduce_kernel", "aten.sum"))
    assert "measured with float32[8](1)" in render_text.paste(extra)


def test_what_only_one_side_has_is_a_note() -> None:
    result = check(report(Plan(), name="g"), bundle(found()))
    assert result.notes == (
        "f was measured but not predicted.", "g was predicted but not measured.",
    )  # fmt: skip
    assert result.exit_code == 2
    failed = replace(report(Plan(), name="g"), errors=(Failure("dir/f.py", "No.", name="f"),))
    assert check(failed, bundle(found())).notes == ("g was predicted but not measured.",)


def test_other_inputs_are_said() -> None:
    result = check(report(Plan()), bundle(found(), inputs=("a=f32[9]",)))
    assert result.notes == ("f: predicted for a=f32[8]; measured with a=f32[9].",)


def test_a_trace_stands_for_the_only_entry() -> None:
    assert len(check(report(Plan()), bundle(found(), name="")).checked) == 1
    two = report(Plan())
    two = replace(two, entries=(*two.entries, replace(two.entries[0], name="g")))
    with pytest.raises(KpredictError, match="one entry point"):
        check(two, bundle(found(), name=""))


def test_unknown_unsteady_assumed_and_errors_are_shown() -> None:
    plan = Plan((ADD,), unknowns=(Unknown("mylib.op.default", "no rule"),))
    claim = report(plan, assumptions=(Assumption("read on line 7", "0"),))
    result = check(claim, bundle(replace(found(), unsteady=("kernels: 1 in one call",))))
    result = replace(result, errors=(Failure("f.py", "Out of memory.", "Smaller.", "h"),))
    text = render_text.text(result)
    for said in (
        "unknown: mylib.op.default, no rule", "not steady: kernels: 1 in one call",
        "assumed: read on line 7 = 0", "error: f.py::h: Out of memory.",
    ):  # fmt: skip
        assert said in text


def test_json() -> None:
    raw = json.loads(json.dumps(render_data.document(verified(Plan((ADD, RELU)), SEEN_ADD), "1")))
    (one,) = raw["comparisons"]
    assert raw["agrees"] is one["agrees"] is False
    assert one["totals"][0] == {
        "what": "kernels", "predicted": {"lo": 2, "hi": 2}, "measured": {"lo": 1, "hi": 1},
        "agrees": False,
    }  # fmt: skip
    first, second = one["rows"]
    assert first["verdict"] == "equal"
    assert first["measured"]["duration_us"] == 4.0
    assert second["measured"] is None
    assert second["predicted"]["reads"][0]["bytes"] == 4_000_000


def test_junit() -> None:
    result = verified(Plan((ADD, RELU)), SEEN_ADD)
    suite = ET.fromstring(render_data.junit(result))
    assert suite.attrib["failures"] == "1"
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.attrib["message"] == "kernels 2, not 1"
    broken = replace(result, errors=(Failure("f.py", 'a "quoted" <b> & c', name="g"),))
    assert ET.fromstring(render_data.junit(broken)).attrib["errors"] == "1"


def test_chrome_draws_both_lanes() -> None:
    raw = json.loads(render_data.chrome(verified(Plan((ADD, RELU)), SEEN_ADD)))
    drawn = [e for e in raw["traceEvents"] if e["ph"] == "X"]
    assert [(e["tid"], e["ts"], e["args"]["verdict"]) for e in drawn] == [
        (1, 0.0, "equal"), (2, 0.0, "equal"), (1, 4.0, "missing"),
    ]  # fmt: skip
    assert drawn[2]["dur"] == pytest.approx(8e6 / 4800 / 1e3)


def test_a_bundle_reads_back_equal() -> None:
    kept = bundle(
        found(
            replace(SEEN_ADD, lines=(Span("f.py", 3, "f"),), module="m", region="r"),
            seen("gemm", "aten.mm", Kind.LIBRARY, 3),
        ),
        inputs=("a=f32[8]",),
        source="abc",
    )
    kept = replace(kept, errors=(Failure("g.py", "No.", "Do.", "g", 3),))
    assert parse_bundle(kept.to_json()) == kept


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no bundle"), ("[]", "no bundle"), ("{}", "no bundle"),
        ('{"kpredict_bundle": 1}', "no bundle"), ('{"kpredict_bundle": 99}', "newer kpredict"),
        ('{"kpredict_bundle": 1, "machine": {"x": 1}, "entries": [], "errors": []}', "no bundle"),
    ],
)  # fmt: skip
def test_what_is_no_bundle(text: str, says: str) -> None:
    with pytest.raises(KpredictError, match=says):
        parse_bundle(text)
