"""Findings as JUnit XML: a file is a suite, a finding a failed case, a file not read an error.

Only what the schema of Jenkins' xUnit plugin knows is written: the file is an attribute of the
suite, line and column are in the case's name and text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from xml.etree import ElementTree as xml

from kpredict.findings.finding import Finding
from kpredict.findings.results import Results

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _plain(text: str) -> str:
    """Text that XML 1.0 can hold: source may have control characters in its literals."""
    return _NOT_XML.sub("\ufffd", text)


def render(results: Results) -> str:
    by_file: dict[str, list[Finding]] = defaultdict(list)
    for f in results.findings:
        by_file[f.path].append(f)
    total = len(results.findings)
    root = xml.Element(
        "testsuites", name="kpredict", tests=str(max(total + len(results.errors), 1)),
        failures=str(total), errors=str(len(results.errors)),
    )  # fmt: skip
    for path, found in sorted(by_file.items()):
        suite = _suite(root, path, tests=len(found), failures=len(found))
        for f in found:
            cell = f"cell {f.cell} " if f.cell is not None else ""
            case = _case(suite, f"{f.code} {f.name} {cell}line {f.line}", f.function or "<module>")
            fault = xml.SubElement(case, "failure", message=_plain(f.message), type=f.code)
            fault.text = _plain(str(f))
    for c in results.errors:
        case = _case(_suite(root, c.path, tests=1, errors=1), "read", c.path)
        xml.SubElement(case, "error", message=_plain(c.error), type="not-read")
    if len(root) == 0:
        _case(_suite(root, "kpredict", tests=1), "check", "kpredict")
    said = "\n".join([*results.notes, results.sentence])
    xml.SubElement(root[-1], "system-out").text = _plain(said)
    xml.indent(root)
    return xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(
    root: xml.Element, name: str, *, tests: int, failures: int = 0, errors: int = 0
) -> xml.Element:
    suite = xml.SubElement(
        root, "testsuite", name=_plain(name), tests=str(tests), failures=str(failures),
        errors=str(errors),
    )  # fmt: skip
    if name != "kpredict":
        suite.set("file", _plain(name))
    return suite


def _case(suite: xml.Element, name: str, where: str) -> xml.Element:
    return xml.SubElement(suite, "testcase", name=_plain(name), classname=_plain(where))
