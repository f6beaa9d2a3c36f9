"""One file's text → its findings. Never raises for what is in the file: a fault is a result too.

In: text, path, options. Out: a Checked with findings in order, those suppressed left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from kpredict.findings.budgets import check_budgets
from kpredict.findings.finding import Confidence, Finding
from kpredict.findings.options import Options
from kpredict.findings.reading import File
from kpredict.findings.registry import Rule, rules
from kpredict.source.infer.comments import Suppression, suppressions
from kpredict.source.infer.entries import read_file
from kpredict.source.infer.parsing import parse
from kpredict.source.infer.project import is_small, root_of

HUGE = 4_000_000
"""Characters beyond which a file is taken for generated data and not read."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of one file. `error` says why it could not be read, with its line if any; `faults`
    are mistakes of ours in single functions, whose findings are then those of their beginning."""

    path: str
    findings: tuple[Finding, ...] = ()
    error: str = ""
    line: int = 0
    suppressed: int = 0
    faults: tuple[str, ...] = ()
    rests_on: tuple[tuple[str, str], ...] = ()  # imported files that were read, and their hashes


def may_touch_torch(text: str) -> bool:
    """Whether a file can have anything to do with torch; if not, it need not be parsed."""
    return "torch" in text or "nn." in text


def check_text(text: str, path: str, options: Options) -> Checked:
    """Check Python text."""
    if len(text) > HUGE:
        return Checked(path, error="larger than 4 MB: taken for generated data, not read")
    if not may_touch_torch(text) and "kpredict" not in text:
        return Checked(path)
    try:
        tree = parse(text)
    except SyntaxError as error:
        return Checked(path, error=f"not Python 3: {error.msg}", line=error.lineno or 0)
    except (ValueError, RecursionError, MemoryError) as error:
        return Checked(path, error=f"cannot be parsed: {error or type(error).__name__}")
    try:
        follow = is_small(root_of(str(Path(path).parent)))
        given = options.inputs_of(path)
        reading = read_file(text, path, options.target, tree=tree, follow=follow, given=given)
        file = File(reading, options.limits, options.target)
        found: list[Finding] = []
        for rule in options.rules:
            try:
                found += _of_rule(rule, file)
            except RecursionError:
                raise
            except Exception as error:
                return Checked(path, error=f"rule {rule.code}: {type(error).__name__}: {error}")
        found += [f for f in check_budgets(file, options.budgets) if _is_on(f.code, options)]
    except RecursionError:
        return Checked(path, error="nested too deeply to be read")
    faults = tuple(f"{path}: {r.name} was not read to its end, a fault of kpredict: {r.fault}"
                   for r in file.functions if r.fault)  # fmt: skip
    rests_on = tuple(sorted(reading.rests_on.items()))
    return replace(_settled(path, text, found, options), faults=faults, rests_on=rests_on)


def _of_rule(rule: Rule, file: File) -> list[Finding]:
    """What a rule finds; a plugin's must go by its own code. Where data is prepared, arrays may
    well be on the CPU: possible is the most that can be said."""
    found = [
        replace(f, confidence=Confidence.POSSIBLE) if file.is_preparation(f.function) else f
        for f in rule.check(file)
    ]
    if any(f.code != rule.code for f in found):
        raise ValueError(f"it reports {found[0].code}; write file.finding({rule.stem!r}, …)")
    return found


def _is_on(code: str, options: Options) -> bool:
    return any(rule.code == code for rule in options.rules)


def _settled(path: str, text: str, found: Iterable[Finding], options: Options) -> Checked:
    """Each finding once, in order, suppressed ones out, unused suppressions in."""
    unique: dict[tuple[int, int, str], Finding] = {}
    for f in found:
        unique.setdefault((f.line, f.column, f.code), f)
    comments = suppressions(text, {code.rstrip("0123456789") for code in rules()})
    used: set[int] = set()
    kept: list[Finding] = []
    hidden = 0
    for f in sorted(unique.values()):
        hiding = [i for i, s in enumerate(comments) if _hides(s, f)]
        if hiding:
            used |= set(hiding)
            hidden += 1
        else:
            kept.append(f)
    if _is_on("KP491", options):
        kept += _unused(path, comments, used, options)
    return Checked(path, tuple(sorted(kept)), suppressed=hidden)


def _hides(s: Suppression, f: Finding) -> bool:
    on_line = s.line == f.line or (f.end_line is not None and f.line <= s.line <= f.end_line)
    return on_line and (not s.codes or f.code in s.codes)


def _unused(
    path: str, comments: list[Suppression], used: set[int], options: Options
) -> list[Finding]:
    ran = {rule.code for rule in options.rules}
    out: list[Finding] = []
    for i, s in enumerate(comments):
        codes = [c for c in s.codes if c in ran or c not in rules()] or ([] if s.codes else ["any"])
        if i in used or not codes:
            continue
        unknown = [c for c in s.codes if c not in rules()]
        what = f"no rule is called {', '.join(unknown)}" if unknown else (
            f"nothing to suppress here ({', '.join(s.codes) or 'any code'})")  # fmt: skip
        out.append(Finding(path, s.at, s.column, "KP491", "unused-suppression", what))
    return out


def in_cell(checked: Checked, cell: int, offset: int) -> Checked:
    """The same findings, their lines counted from the start of a notebook's cell."""
    return replace(
        checked,
        findings=tuple(replace(f, line=f.line - offset, cell=cell,
                               end_line=None if f.end_line is None else f.end_line - offset)
                       for f in checked.findings),
    )  # fmt: skip
