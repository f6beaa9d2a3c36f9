"""A part of the prelude: read by `infer`, never imported."""
