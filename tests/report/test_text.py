"""Text for people."""

from __future__ import annotations

import io
from dataclasses import replace

from kpredict.model import Count, Report
from kpredict.report.quantities import likely, plural, ranges, size, time
from kpredict.report.text import Style, render, style_for

EXPECTED = """\
f.py:1 f
  inputs: x=f32[500,500], w=f32[500,500]

 line  calls  eager  moved  compiled      │
    1                                     │ def f(x, w):
    2          1..2   3 MB  #1        ↺?  │     y = x @ w
    3                                     │     for _ in range(2):
    4     2x      2   4 MB  #2        ↺‼  │         y = y + 1
    5                                 ✂   │     return y
       ↺ writes an array read back later   ‼ the host waits for the GPU   \
✂ torch.compile breaks the graph   ? an op whose launches are unknown

  forward        eager      compiled   saved
  kernels        3..4 (~3)  2..3 (~2)  ~1
  library calls  1          1          0
  syncs          1          0          1
  transfers      7 (7 MB)   5 (5 MB)   2 (2 MB)
  intermediates  2 (4 MB)   1 (2 MB)   1 (2 MB)
  bound on time  7.5 us, launches  5 us, launches  1.5x

  compiled launches
  #1  gemm                    1..2 (~1)  mm        line 2  x, w -> tmp  3 MB
  #2  triton_poi_fused_add_0             add, add  line 4  tmp -> out   2 MB

  unknown: mylib.op.default (line 2): it has no rule; its launches are not counted
  assumed: value read by the host on line 4 is 1 (--assume 4=VALUE changes it)
  graph break on line 5: print

not analysed: f.py:9 No inputs are known for z of h.
  hint: Tell it.

f: eager 3..4 kernels, compiled 2..3 kernels; saved: ~1 launch, 1 round trip, 2 MB; \
1 op unknown and not counted [NVIDIA H100 80GB HBM3, sm_90, torch 2.13.0]
"""


def test_the_whole_text(report: Report) -> None:
    gpu = replace(report.target, gpu="NVIDIA H100 80GB HBM3")
    assert _stripped(render(replace(report, target=gpu))) == _stripped(EXPECTED)


def _stripped(text: str) -> str:
    """Without the widths of the gutter, which are for the eye."""
    return "\n".join(" ".join(line.split()) for line in text.splitlines())


def test_verbose_shows_every_launch_with_threads_and_reasons(report: Report) -> None:
    text = render(report, Style(verbose=1))
    assert "eager launches" in text
    assert "1,280 threads" in text
    assert "split-K" in text
    assert "3 MB  >= 0.896 us" in text  # 3 MB at 3350 GB/s
    assert "graph break on line 5: print: it prints" in text


def test_quiet_is_the_answer_only(report: Report) -> None:
    text = render(report, Style(quiet=True))
    assert text.count("\n") == 1
    assert text.startswith("f: eager 3..4 kernels")


def test_colour_adds_codes_and_nothing_else(report: Report) -> None:
    import re

    plain, coloured = render(report), render(report, Style(color=True))
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[\d*m", "", coloured) == plain


def test_ascii_where_the_stream_is(report: Report) -> None:
    render(report, Style(unicode=False)).encode("ascii")
    latin = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    assert not style_for(latin, color=False).unicode


def test_a_terminal_cuts_and_a_pipe_does_not(report: Report) -> None:
    assert max(map(len, render(report, Style(width=60)).splitlines()[:20])) <= 60
    assert style_for(io.StringIO(), color=False).width is None


def test_what_compiling_adds_is_said(report: Report) -> None:
    from kpredict.model import Mode

    entry = report.entries[0]
    swapped = {
        Mode.EAGER: entry.plans[Mode.COMPILED],
        Mode.COMPILED: entry.plans[Mode.EAGER],
    }
    text = render(replace(report, entries=(replace(entry, plans=swapped),)), Style(quiet=True))
    assert "nothing saved; added: ~1 launch, 1 round trip, 2 MB" in text


def test_an_empty_report_is_empty_text(report: Report) -> None:
    assert render(Report(report.target)) == ""


def test_quantities() -> None:
    sizes = [0, 999, 1000, 20_000_000, 999_600_000, 12_345_678]
    assert [size(n) for n in sizes] == ["0 B", "999 B", "1 kB", "20 MB", "1 GB", "12.3 MB"]
    assert [time(t) for t in (0, 0.5, 12.34, 999.9, 1500, 2e6)] == [
        "0 us", "0.5 us", "12.3 us", "1 ms", "1.5 ms", "2 s",
    ]  # fmt: skip
    assert plural(1, "kernel") == "1 kernel"
    assert plural(Count(0, 0), "kernel") == "0 kernels"
    assert plural(2, "launch", "launches") == "2 launches"
    assert likely(Count(5, 5), 5) == "5"
    assert likely(Count(5, 8), 6) == "5..8 (~6)"
    assert ranges([3, 1, 2, 7], "#") == "#1-3,#7"
