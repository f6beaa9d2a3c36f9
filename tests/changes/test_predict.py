"""What `--what-if` says of files: the numbers are those of the changed program, analysed."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kpredict.changes.predict import what_if
from kpredict.commands._options import requests
from kpredict.model import Entry, Mode, Outcome, Report
from kpredict.report import json as json_format
from kpredict.report import load as loading
from kpredict.report import text as text_format
from kpredict.report.changes import effect
from kpredict.report.style import TITLES, Style
from kpredict.session.ask import answering

pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[2]
FIXTURE = ROOT / "fixtures" / "what_if.py"
SAID = re.compile(r"# what if: (.+?)(?: \| (.*))?$")
AS_RUN = {**TITLES, Mode.AS_WRITTEN: "as run"}

OTHERS = """\
import torch
import torch.nn as nn

net = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64)).cuda()


# kpredict: lr==0.1
@torch.no_grad()
def decay(lr):
    for p in net.parameters():
        p.mul_(1 - lr)


# kpredict: x=f32[8,1,4,64], q=f32[8,16,4,64]
def grouped(x, q):
    k = x.expand(8, 16, 4, 64).contiguous()
    return q * k


# kpredict: x=f32[8,16,4,64]
def needed(x):
    return torch.sin(x).transpose(1, 2).contiguous().view(8, 4, 1024)


# kpredict: x=f32[256,128], w=f32[64]
def weighted(x, w):
    y = x.view(256, 2, 64)
    r = torch.rsqrt(y.pow(2).mean((-2, -1), keepdim=True) + 1e-6)
    return (y * r) * w


# kpredict: x=f32[512,512]
def inner(x):
    y = torch.sin(x) + 1
    torch._dynamo.graph_break()
    return gate(y)


@torch.compile
def gate(x):
    return torch.sigmoid(x) * x


# kpredict: x=f32[512,512]
def looped(x):
    for _ in range(2):
        x = torch.sin(x)
        print(x.shape)
        x = torch.cos(x)
    return x


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 10)

    # kpredict: x=f32[32,64], y=i64[32]<10
    def forward(self, x, y):
        return -torch.log_softmax(self.fc(x), -1).gather(1, y[:, None]).mean()


def make_optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)
"""


def asked(path: str, **flags: object) -> Report:
    found = requests([path], **flags)  # type: ignore[arg-type]
    with answering(20) as answered:
        return what_if(answered(found), found, answered)


@pytest.fixture(scope="module")
def report() -> Report:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return asked("fixtures/what_if.py")


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Entry]:
    path = tmp_path_factory.mktemp("others") / "others.py"
    path.write_text(OTHERS)
    found = asked(str(path), phases="training")
    return {e.name: e for e in found.entries}


def titles(entry: Entry) -> list[str]:
    return [o.title for o in entry.changes or ()]


def outcome(entry: Entry, title: str) -> Outcome:
    return next(o for o in entry.changes or () if o.title.startswith(title))


def kernels(o: Outcome, mode: Mode = Mode.EAGER) -> tuple[int, int]:
    return o.before[mode].expected, o.after[mode].expected


def test_the_fixture_says_what_is_offered(report: Report) -> None:
    lines = FIXTURE.read_text(encoding="utf-8").splitlines()
    starts = sorted(e.line for e in report.entries)
    for number, line in enumerate(lines, 1):
        said = SAID.search(line)
        if said is None or number < starts[0]:
            continue
        at = max(s for s in starts if s <= number)
        (entry,) = [e for e in report.entries if e.line == at]
        if said[1] == "nothing else":
            assert all(o.kind == "compile" for o in entry.changes or ())
        else:
            assert effect(outcome(entry, said[1]), AS_RUN).startswith(said[2])


def test_its_text(report: Report, golden: Callable[[str, str], None]) -> None:
    entries = tuple(replace(e, source="") for e in report.entries)
    text = text_format.render(replace(report, entries=entries), Style(verbose=1))
    parts = re.findall(r"^  what if\n(?:    .*\n)+", text, flags=re.MULTILINE)
    golden("what_if.changes.txt", "\n".join(parts))


def test_the_most_valuable_comes_first(report: Report) -> None:
    for entry in report.entries:
        saved = [
            sum(o.before[m].expected - o.after[m].expected for m in o.after)
            for o in entry.changes or ()
            if o.kind == "by-hand"
        ]
        assert saved == sorted(saved, reverse=True)


def test_a_saved_report_has_them_too(report: Report) -> None:
    again = loading.load(json_format.render(report))
    assert [e.changes for e in again.entries] == [e.changes for e in report.entries]


def test_without_asking_nothing_is_said(report: Report) -> None:
    plain = replace(report, entries=tuple(replace(e, changes=None) for e in report.entries))
    assert "\n  what if\n" not in text_format.render(plain)
    assert "changes" not in json_format.document(plain)["entries"][0]


def test_an_entry_with_nothing_to_change_says_so(report: Report) -> None:
    (entry, *_) = report.entries
    alone = replace(report, entries=(replace(entry, changes=()),))
    assert "no change is known that launches less and computes the same" in (
        text_format.render(alone)
    )


def test_a_loop_over_parameters(others: dict[str, Entry]) -> None:
    assert kernels(outcome(others["decay"], "update loop → torch._foreach_mul_")) == (4, 1)


def test_a_copy_that_is_not_needed(others: dict[str, Entry]) -> None:
    assert kernels(outcome(others["grouped"], "no .contiguous() of expanded")) == (2, 1)


def test_a_copy_that_a_view_needs_is_not_spoken_of(others: dict[str, Entry]) -> None:
    assert not [t for t in titles(others["needed"]) if "contiguous" in t]


def test_a_way_that_fails_gives_way_to_the_next(others: dict[str, Entry]) -> None:
    """The weight has not the shape that is normalised, so it stays outside."""
    change = outcome(others["weighted"], "RMS norm by hand")
    assert change.title.endswith("F.rms_norm(y, y.shape[-2:], eps=1e-6)")
    assert not change.failure


def test_a_function_that_compiles_only_a_part(others: dict[str, Entry]) -> None:
    whole = outcome(others["inner"], "compile all of inner")
    removed = outcome(others["inner"], "torch._dynamo.graph_break() removed")
    assert kernels(whole, Mode.AS_WRITTEN) == (3, 2)
    assert kernels(removed, Mode.COMPILED) == (2, 1)


def test_what_makes_dynamo_skip_a_function(others: dict[str, Entry]) -> None:
    change = outcome(others["looped"], "print left out when compiled")
    assert kernels(change, Mode.COMPILED) == (4, 1)


def test_optimizers_and_losses_of_a_training_step(others: dict[str, Entry]) -> None:
    head = others["Head"]
    fused, loss = outcome(head, "SGD(…, fused=True)"), outcome(head, "cross entropy by hand")
    for change in (fused, loss):
        before, after = kernels(change)
        assert after < before
    everything = outcome(head, "all of them")
    saved = sum(b - a for b, a in map(kernels, (fused, loss)))
    before, after = kernels(everything)
    assert before - after == saved


def test_changed_lines_keep_their_assumed_values(tmp_path: Path) -> None:
    path = tmp_path / "shifted.py"
    path.write_text("""\
import torch


# kpredict: x=f32[64,64]
def f(x):
    e = torch.exp(x)
    y = e / e.sum(-1, keepdim=True)
    n = int(y.sum().item())
    for _ in range(n):
        y = torch.sin(y)
    return y
""")
    report = asked(str(path), assume=["8=5"])
    change = outcome(report.entries[0], "softmax by hand")
    assert kernels(change) == (9, 7)


@pytest.mark.parametrize("more", [["--targets", "h100,t4"], ["--mode", "compiled"]])
def test_what_does_not_go_together(
    kpredict: Callable[..., subprocess.CompletedProcess[str]], more: list[str]
) -> None:
    done = kpredict("fixtures/add_relu.py", "--what-if", *more)
    assert done.returncode == 2
    assert "--what-if" in done.stderr
