# ruff: noqa
# mypy: ignore-errors
"""torch.optim (2.13): what one step of each optimizer dispatches, once its state exists.

Parameters on the GPU take the foreach way unless told otherwise. Numbers that depend on the step
are 1 here: they change no launch.
"""

import torch


def _state(params):
    return [torch.empty_like(p) for p in params]


def _decayed(params, grads, weight_decay, maximize, foreach):
    if maximize:
        grads = aten._foreach_neg(grads) if foreach else [aten.neg(g) for g in grads]
    if weight_decay == 0:
        return grads
    if foreach:
        return aten._foreach_add(grads, params, alpha=weight_decay)
    return [aten.add(g, p, alpha=weight_decay) for g, p in zip(grads, params)]


def SGD(
    params,
    grads,
    lr=1e-3,
    momentum=0,
    dampening=0,
    weight_decay=0,
    nesterov=False,
    maximize=False,
    foreach=None,
    differentiable=False,
    fused=None,
):
    if fused:
        buffers = _state(params) if momentum != 0 else []
        aten._fused_sgd_(
            params,
            grads,
            buffers,
            weight_decay=weight_decay,
            momentum=momentum,
            lr=0.1,
            dampening=dampening,
            nesterov=nesterov,
            maximize=maximize,
            is_first_step=False,
        )
        return
    foreach = foreach is not False
    grads = _decayed(params, grads, weight_decay, maximize, foreach)
    buffers = _state(params)
    if foreach:
        if momentum != 0:
            aten._foreach_mul_(buffers, momentum)
            aten._foreach_add_(buffers, grads, alpha=1)
            if nesterov:
                aten._foreach_add_(grads, buffers, alpha=momentum)
            else:
                grads = buffers
        aten._foreach_add_(params, grads, alpha=-0.1)
        return
    for p, g, b in zip(params, grads, buffers):
        if momentum != 0:
            aten.add_(aten.mul_(b, momentum), g, alpha=1)
            g = aten.add(g, b, alpha=momentum) if nesterov else b
        aten.add_(p, g, alpha=-0.1)


def _adam(params, grads, weight_decay, decoupled, amsgrad, maximize, foreach, capturable, fused):
    first, second, most = _state(params), _state(params), _state(params)
    if fused:
        steps = [torch.empty((), device=p.device) for p in params]
        aten._foreach_add_(steps, 1)
        op = aten._fused_adamw_ if decoupled else aten._fused_adam_
        op(
            params,
            grads,
            first,
            second,
            most if amsgrad else [],
            steps,
            lr=0.1,
            beta1=0.9,
            beta2=0.999,
            weight_decay=0.0,
            eps=1e-8,
            amsgrad=amsgrad,
            maximize=maximize,
        )
        return
    if capturable:
        missing("a capturable optimizer's step", params)
        return
    if foreach is False:
        for p, g, m, v, x in zip(params, grads, first, second, most):
            if maximize:
                g = aten.neg(g)
            if weight_decay != 0 and decoupled:
                aten.mul_(p, 0.99)
            elif weight_decay != 0:
                g = aten.add(g, p, alpha=weight_decay)
            aten.lerp_(m, g, 0.1)
            aten.addcmul_(aten.mul_(v, 0.999), g, g, value=0.001)
            if amsgrad:
                aten.maximum(x, v, out=x)
                v = x
            scale = aten.add_(aten.div(aten.sqrt(v), 0.9), 1e-8)
            aten.addcdiv_(p, m, scale, value=-0.1)
        return
    if maximize:
        grads = aten._foreach_neg(grads)
    if weight_decay != 0 and decoupled:
        aten._foreach_mul_(params, 0.99)
    elif weight_decay != 0:
        grads = aten._foreach_add(grads, params, alpha=weight_decay)
    aten._foreach_lerp_(first, grads, 0.1)
    aten._foreach_mul_(second, 0.999)
    aten._foreach_addcmul_(second, grads, grads, 0.001)
    if amsgrad:
        aten._foreach_maximum_(most, second)
        second = most
    scale = aten._foreach_sqrt(second)
    numbers = [1.0] * len(params)
    aten._foreach_div_(scale, numbers)
    aten._foreach_add_(scale, 1e-8)
    aten._foreach_addcdiv_(params, first, scale, numbers)


def Adam(
    params,
    grads,
    lr=1e-3,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0,
    amsgrad=False,
    foreach=None,
    maximize=False,
    capturable=False,
    differentiable=False,
    fused=None,
    decoupled_weight_decay=False,
):
    _adam(
        params,
        grads,
        weight_decay,
        decoupled_weight_decay,
        amsgrad,
        maximize,
        foreach,
        capturable,
        fused,
    )


def AdamW(
    params,
    grads,
    lr=1e-3,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=1e-2,
    amsgrad=False,
    maximize=False,
    foreach=None,
    capturable=False,
    differentiable=False,
    fused=None,
):
    _adam(params, grads, weight_decay, True, amsgrad, maximize, foreach, capturable, fused)


def RMSprop(
    params,
    grads,
    lr=1e-2,
    alpha=0.99,
    eps=1e-8,
    weight_decay=0,
    momentum=0,
    centered=False,
    capturable=False,
    foreach=None,
    maximize=False,
    differentiable=False,
):
    foreach = foreach is not False
    grads = _decayed(params, grads, weight_decay, maximize, foreach)
    squares, means, buffers = _state(params), _state(params), _state(params)
    if foreach:
        aten._foreach_mul_(squares, alpha)
        aten._foreach_addcmul_(squares, grads, grads, 0.01)
        if centered:
            aten._foreach_lerp_(means, grads, 0.01)
            scale = aten._foreach_addcmul(squares, means, means, -1)
            aten._foreach_sqrt_(scale)
        else:
            scale = aten._foreach_sqrt(squares)
        aten._foreach_add_(scale, eps)
        if momentum > 0:
            aten._foreach_mul_(buffers, momentum)
            aten._foreach_addcdiv_(buffers, grads, scale, 1)
            aten._foreach_add_(params, buffers, alpha=-0.1)
        else:
            aten._foreach_addcdiv_(params, grads, scale, -0.1)
        return
    for p, g, s, m, b in zip(params, grads, squares, means, buffers):
        aten.addcmul_(aten.mul_(s, alpha), g, g, value=0.01)
        if centered:
            aten.lerp_(m, g, 0.01)
            scale = aten.sqrt_(aten.addcmul(s, m, m, value=-1))
        else:
            scale = aten.sqrt(s)
        scale = aten.add_(scale, eps)
        if momentum > 0:
            aten.addcdiv_(aten.mul_(b, momentum), g, scale)
            aten.add_(p, b, alpha=-0.1)
        else:
            aten.addcdiv_(p, g, scale, value=-0.1)


def Adagrad(
    params,
    grads,
    lr=1e-2,
    lr_decay=0,
    weight_decay=0,
    initial_accumulator_value=0,
    eps=1e-10,
    foreach=None,
    maximize=False,
    differentiable=False,
    fused=None,
):
    foreach = foreach is not False
    grads = _decayed(params, grads, weight_decay, maximize, foreach)
    sums = _state(params)
    if foreach:
        aten._foreach_addcmul_(sums, grads, grads, 1)
        scale = aten._foreach_sqrt(sums)
        aten._foreach_add_(scale, eps)
        steps = aten._foreach_mul(grads, [1.0] * len(params))
        aten._foreach_addcdiv_(params, steps, scale, 1)
        return
    for p, g, s in zip(params, grads, sums):
        aten.addcmul_(s, g, g, value=1)
        scale = aten.add_(aten.sqrt(s), eps)
        aten.addcdiv_(p, g, scale, value=-0.1)


def Adadelta(
    params,
    grads,
    lr=1.0,
    rho=0.9,
    eps=1e-6,
    weight_decay=0,
    foreach=None,
    capturable=False,
    maximize=False,
    differentiable=False,
):
    grads = _decayed(params, grads, weight_decay, maximize, True)
    squares, deltas = _state(params), _state(params)
    if foreach is False:
        missing("Adadelta.step", params)
        return
    aten._foreach_mul_(squares, rho)
    aten._foreach_addcmul_(squares, grads, grads, 0.1)
    scale = aten._foreach_add(squares, eps)
    aten._foreach_sqrt_(scale)
    step = aten._foreach_add(deltas, eps)
    aten._foreach_sqrt_(step)
    aten._foreach_div_(step, scale)
    aten._foreach_mul_(step, grads)
    aten._foreach_mul_(deltas, rho)
    aten._foreach_addcmul_(deltas, step, step, 0.1)
    aten._foreach_add_(params, step, alpha=-1)


def Adamax(
    params,
    grads,
    lr=2e-3,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0,
    foreach=None,
    maximize=False,
    differentiable=False,
    capturable=False,
):
    if foreach is False:
        missing("Adamax.step", params)
        return
    grads = _decayed(params, grads, weight_decay, maximize, True)
    first, norms = _state(params), _state(params)
    aten._foreach_lerp_(first, grads, 0.1)
    aten._foreach_mul_(norms, 0.999)
    grads = aten._foreach_abs(grads)
    aten._foreach_add_(grads, eps)
    aten._foreach_maximum_(norms, grads)
    aten._foreach_addcdiv_(params, first, norms, [1.0] * len(params))


def _moments(params, grads, weight_decay, decoupled, maximize):
    """Decay, and Adam's two moments: gradients, the first moment, the root of the second."""
    if decoupled and weight_decay != 0:
        aten._foreach_mul_(params, 0.99)
    else:
        grads = _decayed(params, grads, weight_decay, maximize, True)
    first, second = _state(params), _state(params)
    aten._foreach_lerp_(first, grads, 0.1)
    aten._foreach_mul_(second, 0.999)
    aten._foreach_addcmul_(second, grads, grads, 0.001)
    return grads, first, aten._foreach_sqrt(second)


def NAdam(
    params,
    grads,
    lr=2e-3,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0,
    momentum_decay=4e-3,
    decoupled_weight_decay=False,
    foreach=None,
    maximize=False,
    capturable=False,
    differentiable=False,
):
    if foreach is False:
        missing("NAdam.step", params)
        return
    grads, first, scale = _moments(params, grads, weight_decay, decoupled_weight_decay, maximize)
    numbers = [1.0] * len(params)
    aten._foreach_div_(scale, numbers)
    aten._foreach_add_(scale, eps)
    aten._foreach_addcdiv_(params, grads, scale, numbers)
    aten._foreach_addcdiv_(params, first, scale, numbers)


def RAdam(
    params,
    grads,
    lr=1e-3,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0,
    decoupled_weight_decay=False,
    foreach=None,
    maximize=False,
    capturable=False,
    differentiable=False,
):
    if foreach is False:
        missing("RAdam.step", params)
        return
    grads, first, scale = _moments(params, grads, weight_decay, decoupled_weight_decay, maximize)
    numbers = [1.0] * len(params)
    aten._foreach_add_(scale, eps)
    aten._foreach_div_(scale, numbers)
    aten._foreach_reciprocal_(scale)
    aten._foreach_add_(scale, numbers)
    aten._foreach_addcmul_(params, first, scale, 1)
