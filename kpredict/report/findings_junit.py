"""Findings as JUnit XML: a file is a suite, a finding a failed case, a file not read an error."""

from __future__ import annotations

from collections import defaultdict
from xml.etree import ElementTree as xml

from kpredict.findings.finding import Finding
from kpredict.findings.results import Results


def render(results: Results) -> str:
    by_file: dict[str, list[Finding]] = defaultdict(list)
    for f in results.findings:
        by_file[f.path].append(f)
    total = len(results.findings)
    root = xml.Element(
        "testsuites",
        name="kpredict",
        tests=str(max(total + len(results.errors), 1)),
        failures=str(total),
        errors=str(len(results.errors)),
    )
    for path, found in sorted(by_file.items()):
        suite = xml.SubElement(root, "testsuite", name=path, tests=str(len(found)),
                               failures=str(len(found)), errors="0")  # fmt: skip
        for f in found:
            case = xml.SubElement(
                suite,
                "testcase",
                name=f"{f.code} {f.name} line {f.line}",
                classname=f.function or "<module>",
                file=path,
                line=str(f.line),
            )
            xml.SubElement(case, "failure", message=f.message, type=f.code).text = str(f)
    for c in results.errors:
        suite = xml.SubElement(root, "testsuite", name=c.path, tests="1", failures="0", errors="1")
        case = xml.SubElement(suite, "testcase", name="read", classname=c.path)
        xml.SubElement(case, "error", message=c.error, type="not-read")
    if len(root) == 0:
        suite = xml.SubElement(
            root, "testsuite", name="kpredict", tests="1", failures="0", errors="0"
        )
        xml.SubElement(suite, "testcase", name="check", classname="kpredict")
    xml.indent(root)
    return xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
