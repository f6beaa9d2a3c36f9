"""The rules as one Markdown page: `docs/rules.md` is written by it.

python -m kpredict.report.findings_rules > docs/rules.md
"""

from __future__ import annotations

import re

from kpredict.findings.registry import FAMILIES, PARTS, Rule, rules


def render() -> str:
    """The page: an overview, then each rule with the five parts of its docstring."""
    lines = [
        "# Rules",
        "",
        "Written from the docstrings by `python -m kpredict.report.findings_rules`; do not edit.",
        "`kpredict explain CODE` prints the same.",
    ]
    for prefix, family in FAMILIES.items():
        found = [r for r in rules().values() if r.code.startswith(prefix)]
        if not found:
            continue
        lines += [
            "",
            f"## {prefix}xx: {family}",
            "",
            "| code | name | what | on |",
            "|---|---|---|---|",
        ]
        lines += [
            f"| [{r.code}](#{_anchor(r)}) | {r.name} | {r.summary} "
            f"| {'yes' if r.default else 'when selected'} |"
            for r in found
        ]
    for rule in rules().values():
        lines += ["", f"### {rule.code} {rule.name}", "", rule.summary, ""]
        for part in PARTS:
            body = rule.part(part)
            if part == "Example":
                language = "toml" if body.lstrip().startswith("[[") else "python"
                code = "\n".join(line.removeprefix("    ") for line in ("    " + body).splitlines())
                body = f"```{language}\n{code}\n```"
            else:
                body = re.sub(r"\n(?!\n|-|    )", " ", body)
            lines += [f"**{part}.**" if part != "Example" else "**Example.**", "", body, ""]
        lines.pop()
    return "\n".join(lines) + "\n"


def _anchor(rule: Rule) -> str:
    return f"{rule.code} {rule.name}".lower().replace(" ", "-")


if __name__ == "__main__":
    print(render(), end="")
