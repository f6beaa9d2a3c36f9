"""`kpredict explain TOPIC`: what decides an op's launches, what a finding's code means, why two
launches are not one. Topics: `aten.addmm`, `KP201` (or `KP2` for the list), `fusion/…`.

Another kind of topic is one more function in `SOURCES`: it returns the text for a topic it knows,
else None.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from inspect import cleandoc

import click

from kpredict.model import KpredictError


def explain_op(topic: str) -> str | None:
    """The docstring, basis and source of the rule for an ATen op or packet."""
    from kpredict.eager.registry import rules

    table = rules()
    name = topic.replace("::", ".")
    names = (name, f"aten.{name}", name.removesuffix(".default"))
    rule = next((table[n] for n in names if n in table), None)
    if rule is None:
        overloads = [k for k in table if k.startswith((f"{name}.", f"aten.{name}."))]
        if not overloads:
            return None
        return "\n\n".join(filter(None, (explain_op(k) for k in overloads)))
    lines = [
        rule.key,
        "",
        cleandoc(rule.doc),
        "",
        f"basis:  {rule.basis.value}",
        f"source: {rule.source}",
        f"rule:   {rule.function.__module__}.{rule.function.__qualname__}",
    ]
    return "\n".join(lines)


def explain_code(topic: str) -> str | None:
    """The whole docstring of a finding's rule; of a prefix such as KP1, the list of its rules."""
    from kpredict.findings.registry import rules

    code = topic.upper()
    if not code.startswith("KP") and re.fullmatch(r"[A-Z]{2,}\d{1,3}", code):
        from kpredict.commands._options import config_for, plugins_of
        from kpredict.plugins import load

        load(plugins_of(config_for(())))  # only here: the code is none of ours
    if code in rules():
        rule = rules()[code]
        return f"{rule.code} {rule.name}\n\n{rule.doc}"
    found = [r for r in rules().values() if code[:2].isalpha() and r.code.startswith(code)]
    return "\n".join(f"{r.code} {r.name}: {r.summary}" for r in found) or None


def explain_fusion(topic: str) -> str | None:
    """A reason why two launches are not one, `fusion/<reason>`; of `fusion`, the list of them."""
    if not topic.startswith("fusion"):
        return None
    from kpredict.compiled.reasons import explain_fusion as text_of

    return text_of(topic)


SOURCES: tuple[Callable[[str], str | None], ...] = (explain_code, explain_fusion, explain_op)


def _near(topic: str) -> str:
    from kpredict.eager.registry import rules as ops
    from kpredict.findings.registry import rules as codes

    return ", ".join(get_close_matches(topic, [*codes(), *ops()], 3, 0.6))


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """For the shell: codes, or ops once it is clear that one is wanted."""
    from kpredict.eager.registry import rules as ops
    from kpredict.findings.registry import rules as codes

    table = ops() if incomplete.startswith("aten.") else ("aten.", "fusion", *codes())
    return [t for t in table if t.startswith((incomplete, incomplete.upper()))]


@click.command()
@click.argument("topic", shell_complete=_complete)
def command(topic: str) -> None:
    """Explain TOPIC: an op (aten.addmm), a finding (KP201; KP2 lists them), or fusion/REASON."""
    for source in SOURCES:
        text = source(topic)
        if text is not None:
            click.echo(text)
            return
    near = _near(topic)
    raise KpredictError(
        f"Nothing is known about {topic!r}.",
        f"Did you mean {near}?" if near else "`kpredict ops` lists all ops with a rule.",
    )
