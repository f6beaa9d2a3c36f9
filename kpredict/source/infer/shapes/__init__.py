"""What each ATen op returns, as metadata: one file per family. See `registry.py`."""
