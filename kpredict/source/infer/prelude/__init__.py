"""PyTorch's composites, written in Python for the reader to read. Nothing here is ever run.

`aten.x(...)` dispatches an op; `torch.x(...)` is what user code would write. Three names are the
reader's own: `known(v)` tells whether a value is known, `grad_enabled()` the grad mode, and
`perhaps(copy, otherwise)` gives a result that takes a copy or does not. What a function does
follows the host code named above it.
"""
