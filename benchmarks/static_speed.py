"""How fast the static check is, against libcst parsing the same files, in one run.

    python benchmarks/static_speed.py FOLDER [--jobs N]

Prints the seconds of `libcst.parse_module` over all Python files, of a cold check and of a second
check from the cache, with the same number of processes, and the peak memory of a worker. Processor
time (user and system, workers too) is what to compare on a machine that others use as well.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from kpredict.findings.cache import Cache, stamp
from kpredict.findings.files import files_of
from kpredict.findings.options import Options
from kpredict.findings.run import check_files


def spent() -> float:
    """Seconds of processor time so far, of this process and of workers that have ended."""
    used = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def parse(path: str) -> None:
    import libcst

    try:
        libcst.parse_module(Path(path).read_bytes())
    except Exception:
        return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    files = [f for f in files_of([options.folder]) if f.endswith(".py")]
    size = sum(os.path.getsize(f) for f in files)
    print(f"{len(files)} files, {size / 1e6:.1f} MB, {options.jobs} processes")
    settings = Options()
    with tempfile.TemporaryDirectory() as scratch:
        start, before = time.perf_counter(), spent()
        checked = check_files(
            files, settings, jobs=options.jobs, cache=Cache(Path(scratch), stamp(settings))
        )
        cold, cold_cpu = time.perf_counter() - start, spent() - before
        start = time.perf_counter()
        check_files(files, settings, jobs=options.jobs, cache=Cache(Path(scratch), stamp(settings)))
        warm = time.perf_counter() - start
    start, before = time.perf_counter(), spent()
    with ProcessPoolExecutor(options.jobs, get_context("fork")) as pool:
        list(pool.map(parse, files, chunksize=16))
    libcst, libcst_cpu = time.perf_counter() - start, spent() - before
    found = sum(len(c.findings) for c in checked)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"libcst.parse_module alone {libcst:7.1f} s, processor {libcst_cpu:.1f} s")
    print(
        f"check, cold               {cold:7.1f} s, processor {cold_cpu:.1f} s = "
        f"{cold_cpu / libcst_cpu:.2f} of it; {found} findings"
    )
    print(f"check, from the cache     {warm:7.1f} s = {len(files) / warm:.0f} files/s")
    print(f"largest worker            {memory:7.0f} MB")


if __name__ == "__main__":
    main()
