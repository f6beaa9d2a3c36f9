"""What eager PyTorch launches: OpGraph → Plan, by one rule per ATen op (see `rules/`)."""
