"""Objects of torch.optim: a step is what the prelude's `optim` says of its class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kpredict.source.infer.joining import arrays_in
from kpredict.source.infer.shelf import prelude
from kpredict.source.infer.tape import Tape
from kpredict.source.infer.values import (
    UNKNOWN,
    Array,
    Function,
    Optimizer,
    Several,
    Value,
)  # fmt: skip


class Optimizers(Tape):
    def optimizer_method(
        self, o: Optimizer, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Value:
        if name == "step":
            return self._step(o, args[0] if args else kwargs.get("closure"))
        if name == "zero_grad":
            self.called("zero_grad", **kwargs)
            to_none = kwargs.get("set_to_none", args[0] if args else True)
            together = o.kwargs.get("foreach") is True
            self.forget_gradients(arrays_in(o.parameters), to_none is not False, together)
        return None

    def _step(self, o: Optimizer, closure: Value) -> Value:
        loss = None
        if closure is not None:
            loss = self.call(closure, (), {})
        function = prelude("optim").names.get(o.name)
        groups = list(self._groups(o))
        if not isinstance(function, Function) or not groups:
            self.missing("optimizer.step")
            return loss
        for parameters, options in groups:
            known = [p for p in parameters if p.key in self.accumulated]
            chosen = known or parameters
            grads = [self.gradient_of(p) for p in chosen]
            with self.mode(grad=False, autocast=None):
                self.call_function(function, (chosen, grads), options)
        return loss

    def _groups(self, o: Optimizer) -> Iterator[tuple[list[Array], dict[str, Value]]]:
        """Parameters and options of each group; nothing when they are not known."""
        items = self.iterate(o.parameters)
        if isinstance(items, Several) or UNKNOWN in [i for i in items if not isinstance(i, Array)]:
            return
        if all(isinstance(i, dict) for i in items):
            for group in items:
                held = group.get("params")
                inside = [held] if isinstance(held, Array) else self.iterate(held)
                if isinstance(inside, Several):
                    return
                rest = {k: v for k, v in group.items() if k != "params"}
                yield [p for p in inside if isinstance(p, Array)], {**o.kwargs, **rest}
            return
        plain = [i[1] if isinstance(i, tuple) and len(i) == 2 else i for i in items]
        yield [p for p in plain if isinstance(p, Array)], dict(o.kwargs)
