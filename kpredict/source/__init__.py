"""Reads the user's source without running it: entry points, inputs, directives (libcst only)."""
