"""One file per code: docstring, check, and examples that are its tests."""
