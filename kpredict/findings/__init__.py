"""Warnings with codes: what costs launches, round trips and syncs. One file per rule in `rules/`."""
