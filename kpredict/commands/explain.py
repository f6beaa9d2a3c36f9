"""`kpredict explain TOPIC`: what decides an op's launches. Topics: `aten.addmm` and the like.

Another kind of topic (a finding's code, a fusion barrier) is one more function in `SOURCES`: it
returns the text for a topic it knows, else None.
"""

from __future__ import annotations

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


SOURCES: tuple[Callable[[str], str | None], ...] = (explain_op,)


def _near(topic: str) -> str:
    from kpredict.eager.registry import rules

    return ", ".join(get_close_matches(topic, rules(), 3, 0.6))


@click.command()
@click.argument("topic")
def command(topic: str) -> None:
    """Explain TOPIC: an op (aten.addmm) and what decides how many kernels it launches."""
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
