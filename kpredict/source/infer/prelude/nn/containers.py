# ruff: noqa
# mypy: ignore-errors
"""torch.nn: Module, containers, parameters."""

import torch


class Module:
    pass


class Identity(Module):
    def forward(self, input):
        return input


class Sequential(Module):
    def __init__(self, *args):
        if len(args) == 1 and isinstance(args[0], dict):
            self._items = dict(args[0])
        else:
            self._items = {str(i): m for i, m in enumerate(args)}

    def append(self, module):
        self._items[str(len(self._items))] = module
        return self

    def add_module(self, name, module):
        self._items[name] = module

    def __iter__(self):
        return self._items.values()

    def __len__(self):
        return len(self._items)

    def forward(self, input):
        for module in self._items.values():
            input = module(input)
        return input


class ModuleList(Module):
    def __init__(self, modules=None):
        self._items = [] if modules is None else list(modules)

    def append(self, module):
        self._items.append(module)
        return self

    def extend(self, modules):
        self._items.extend(modules)
        return self

    def insert(self, index, module):
        self._items.insert(index, module)


ParameterList = ModuleList


class ModuleDict(Module):
    def __init__(self, modules=None):
        self._items = {} if modules is None else dict(modules)

    def items(self):
        return self._items.items()

    def values(self):
        return self._items.values()

    def keys(self):
        return self._items.keys()

    def update(self, modules):
        self._items.update(modules)


ParameterDict = ModuleDict


def Parameter(data=None, requires_grad=True):
    return parameter(data, requires_grad)


def _made(shape, device, dtype):
    return parameter(torch.empty(shape, device=device, dtype=dtype), True)
