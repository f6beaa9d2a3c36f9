"""Source → [Op] without torch and without running anything: an interpreter of metadata.

Read `values.py` (what a name can hold), `trace.py` (what a run leaves behind), `state.py` (the
layers of the reader, one file each), then `machine.py`. What PyTorch does is in `prelude/`, what
its ops return in `shapes/`.
Python's own parser is used and not libcst: it gives positions for free and reads 54 MB in seconds,
where libcst needs minutes; comments, which it drops, are read by `comments.py`.
"""
