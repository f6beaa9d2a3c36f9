"""Warnings with codes: what costs launches, round trips, syncs. One file per rule."""
