import torch


# kpredict: x=f32[64,64], y=f32[64,64]
def chain(x, y):
    return torch.sigmoid(x) * y + 1.0


# kpredict: x=f32[64,64]
def softmax(x):
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


# kpredict: x=f32[8,64]
def rows(x):
    out = []
    for i in range(x.shape[0]):
        out.append(x[i] / x[i].norm())
    return torch.stack(out)


# kpredict: a=f32[64], b=f32[64]
def tiny(a, b):
    x, y = a.mean(), b.mean()
    return (x - y) * 0.5 + x * y - 1.0


# kpredict: x=f32[4,8]
def grow(x):
    out = torch.empty(0, 8, device="cuda")
    for _ in range(3):
        out = torch.cat([out, x])
    return out


# kpredict: x=f32[8]
def build(x):
    for _ in range(3):
        x = x * torch.tensor([2.0], device="cuda")
    return x


# kpredict: x=f32[8192,8192]
def large(x):
    return torch.sin(x * 2).sum()


# kpredict: x=f32[64]
def cast(x):
    return x.double().float() + 1


# kpredict: x=f32[2,3,4]
def copies(x):
    return x.transpose(1, 2).contiguous()


# kpredict: x=f32[64]
def constant(x):
    return torch.where(x > 0, x, torch.zeros_like(x))


# kpredict: x=f32[2,1,4]
def expanded(x):
    return x.expand(2, 3, 4).contiguous()


# kpredict: x=f32[64]
def forward(x):
    if x.isnan().any():
        raise ValueError
    return x


# kpredict: x=f32[64]
def keep(x):
    return x[x > 0]


# kpredict: x=f32[64]
def out(x):
    parts = []
    for _ in range(3):
        parts.append((x * 2).cpu())
    return parts
