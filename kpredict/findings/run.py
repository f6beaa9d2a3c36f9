"""A whole check: files, in processes, from the cache where nothing changed.

In: paths and options. Out: a Checked per file, in the order of the files. Memory does not grow with
the number of files: what a file was read into is dropped before the next.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from kpredict.findings.cache import Cache
from kpredict.findings.check import Checked
from kpredict.findings.files import check_bytes, read_bytes
from kpredict.findings.options import Options

FEW = 8
"""Files below which more processes cost more than they bring."""


def check_files(
    files: Sequence[str], options: Options, *, jobs: int = 1, cache: Cache | None = None,
    stdin: bytes | None = None, stdin_name: str = "<stdin>",
    heard: Callable[[int, int], None] | None = None,
) -> list[Checked]:  # fmt: skip
    """Check every file. `heard(done, all)` is told how far it is."""
    results: dict[str, Checked] = {}
    todo: list[str] = []
    keys: dict[str, str] = {}
    for path in files:
        if path == "-":
            results[path] = check_bytes(stdin or b"", stdin_name, options)
            continue
        if cache is not None:
            try:
                keys[path] = cache.key(read_bytes(path))
            except OSError:
                todo.append(path)
                continue
            known = cache.get(path, keys[path])
            if known is not None:
                results[path] = known
                continue
        todo.append(path)
    done = len(results)
    for checked in _checked(todo, options, jobs):
        results[checked.path] = checked
        done += 1
        if cache is not None and checked.path in keys:
            cache.put(checked, keys[checked.path])
        if heard is not None:
            heard(done, len(files))
    if cache is not None:
        cache.save()
    return [results[path] for path in files]


def _checked(todo: Sequence[str], options: Options, jobs: int) -> Iterator[Checked]:
    forks = hasattr(os, "fork")
    if jobs <= 1 or len(todo) < FEW or (options.plugins and not forks):  # a fork has the plugins
        for path in todo:
            yield check_file(path, options)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    context = get_context("fork" if forks else "spawn")
    chunk = max(1, min(16, len(todo) // (4 * jobs)))
    with ProcessPoolExecutor(min(jobs, len(todo)), context) as pool:
        yield from pool.map(check_file, todo, [options] * len(todo), chunksize=chunk)


def check_file(path: str, options: Options) -> Checked:
    """Check one file from disk. A file that cannot be read is a result too."""
    try:
        data = read_bytes(path)
    except OSError as error:
        return Checked(path, error=f"cannot be read: {error.strerror}")
    try:
        return check_bytes(data, path, options)
    except Exception as error:
        return Checked(path, error=f"internal error: {type(error).__name__}: {error}")
