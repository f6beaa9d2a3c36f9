"""The compiled plan: what torch.compile would launch, by Inductor's own decisions."""
