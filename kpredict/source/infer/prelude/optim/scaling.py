# ruff: noqa
# mypy: ignore-errors
"""torch.amp.GradScaler (2.13): the factor lives on the GPU, and `step` reads whether to skip."""

import torch


class GradScaler:
    def __init__(
        self,
        device="cuda",
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self.enabled = enabled
        self.factor = torch.full((), init_scale, dtype=torch.float32, device="cuda")
        self.tracker = torch.full((), 0, dtype=torch.int32, device="cuda")
        self.found = None

    def is_enabled(self):
        return self.enabled

    def get_scale(self):
        return self.factor.item() if self.enabled else 1.0

    def scale(self, outputs):
        if not self.enabled:
            return outputs
        if isinstance(outputs, torch.Tensor):
            return outputs * self.factor
        return [self.scale(o) for o in outputs]

    def unscale_(self, optimizer):
        if not self.enabled:
            return
        inverse = self.factor.double().reciprocal().float()
        self.found = torch.full((), 0.0, dtype=torch.float32, device="cuda")
        for group in optimizer.param_groups:
            grads = [p.grad for p in group["params"]]
            aten._amp_foreach_non_finite_check_and_unscale_(grads, self.found, inverse)

    def step(self, optimizer, *args, **kwargs):
        if not self.enabled:
            return optimizer.step(*args, **kwargs)
        if self.found is None:
            self.unscale_(optimizer)
        sync("item", self.found)
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale=None):
        if not self.enabled:
            return
        aten._amp_update_scale_(self.factor, self.tracker, self.found, 2.0, 0.5, 2000)
        self.found = None

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass
