"""What eager PyTorch launches: [Op] → Plan, by one rule per ATen op (see `rules/`)."""
