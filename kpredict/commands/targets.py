"""`kpredict targets`: the GPU profiles a count can be for."""

from __future__ import annotations

import json

import click

from kpredict.targets import DEFAULT, TARGETS


@click.command()
@click.option("-f", "--format", "form", type=click.Choice(["text", "json"]), default="text")
def command(form: str) -> None:
    """List the GPUs that --target knows, with the public figures used."""
    if form == "json":
        rows = [
            {
                "name": t.name, "gpu": t.gpu, "capability": f"{t.capability[0]}.{t.capability[1]}",
                "sms": t.sms, "bandwidth_gb_s": t.bandwidth, "l2_mib": t.l2, "clock_mhz": t.clock,
                "memory_mib": t.memory, "fp32_tflops": t.fp32_tflops,
                "tf32_tflops": t.tf32_tflops, "fp16_tflops": t.fp16_tflops,
                "launch_us": t.launch_us, "default": t.name == DEFAULT,
            }
            for t in TARGETS.values()
        ]  # fmt: skip
        click.echo(json.dumps(rows, indent=2))
        return
    click.echo(
        f"{'target':9} {'GPU':24} {'sm':>5} {'SMs':>4} {'GB/s':>6} {'L2 MiB':>7} {'MHz':>5}"
        f" {'TFLOP/s fp32':>13} {'tf32':>5} {'fp16':>5} {'us/launch':>10}"
    )
    for t in TARGETS.values():
        capability = f"{t.capability[0]}.{t.capability[1]}"
        mark = "  (default)" if t.name == DEFAULT else ""
        click.echo(
            f"{t.name:9} {t.gpu:24} {capability:>5} {t.sms:>4} {t.bandwidth:>6g} {t.l2:>7}"
            f" {t.clock:>5} {t.fp32_tflops:>13g} {t.tf32_tflops:>5g} {t.fp16_tflops:>5g}"
            f" {t.launch_us:>10g}{mark}"
        )
