"""`kpredict ops`: every rule of the eager predictor, with its basis. Does not import torch."""

from __future__ import annotations

import json

import click


@click.command()
@click.argument("pattern", default="")
@click.option("-f", "--format", "form", type=click.Choice(["text", "json"]), default="text")
def command(pattern: str, form: str) -> None:
    """List the ATen ops that have a rule, those whose name contains PATTERN."""
    from kpredict.eager.registry import rules

    found = [rule for key, rule in sorted(rules().items()) if pattern in key]
    if form == "json":
        rows = [
            {"op": r.key, "basis": r.basis.value, "source": r.source, "origin": r.origin}
            for r in found
        ]
        click.echo(json.dumps(rows, indent=2))
        return
    width = max((len(r.key) for r in found), default=0)
    for r in found:
        family = r.origin.rsplit(".", 1)[-1]
        click.echo(f"{r.key:{width}}  {r.basis.value:9}  {family:14}  {r.source}")
    click.echo(f"{len(found)} rules", err=True)
