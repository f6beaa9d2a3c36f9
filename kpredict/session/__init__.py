"""Analyses a file in a child process: `ask` (parent, no torch) starts `child` (torch)."""
