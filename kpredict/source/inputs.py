"""The small language for inputs: `x=f32[64,128]` → InputSpec. Standard library only.

    tensor   f32[64,128]        dtype and shape; `f32[]` is a scalar tensor; sizes may be names
             f32[64,128](1,64)  with strides
             i64[8,128]<50257   integers below a bound
             f32[64,128]@cpu    marks: cpu, pinned, grad (needs a gradient), channels_last
    value    3  1.5  True  None  "relu"  =relu    a Python literal; after `=` any text
    nesting  [f32[3], f32[4]]  (f32[3], 2)  {ids: i64[8,128], n: 3}

On the command line a dotted name nests too: `--input batch.ids=i64[8,128] --input batch.n=3`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from kpredict.model import KpredictError

DTYPES: Mapping[str, str] = {
    "f32": "float32", "float": "float32", "f16": "float16", "half": "float16",
    "bf16": "bfloat16", "f64": "float64", "double": "float64",
    "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2",
    "i64": "int64", "long": "int64", "i32": "int32", "int": "int32", "i16": "int16", "i8": "int8",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "bool": "bool", "b1": "bool",
    "c64": "complex64", "c128": "complex128",
    **{name: name for name in (
        "float32", "float16", "bfloat16", "float64", "float8_e4m3fn", "float8_e5m2", "int64",
        "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64", "complex64", "complex128",
    )},
}  # fmt: skip
"""Names a dtype may be written by, with the name torch prints."""

MARKS = ("cpu", "cuda", "pinned", "grad", "channels_last")


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor to be made. A size is a number or an expression over named dimensions.

    `high` bounds integer values from above (None: 2); `stride` None means row-major, or
    channels-last when `channels_last` says so.
    """

    dtype: str
    shape: tuple[int | str, ...]
    stride: tuple[int, ...] | None = None
    device: str = "cuda"
    grad: bool = False
    pinned: bool = False
    channels_last: bool = False
    high: int | None = None

    def __str__(self) -> str:
        short = next((s for s, long in DTYPES.items() if long == self.dtype), self.dtype)
        text = f"{short}[{','.join(map(str, self.shape))}]"
        if self.stride is not None:
            text += f"({','.join(map(str, self.stride))})"
        if self.high is not None:
            text += f"<{self.high}"
        marks = {
            "cpu": self.device == "cpu" and not self.pinned, "pinned": self.pinned,
            "grad": self.grad, "channels_last": self.channels_last,
        }  # fmt: skip
        return text + "".join(f"@{m}" for m, on in marks.items() if on)


@dataclass(frozen=True, slots=True)
class ValueSpec:
    """A Python literal."""

    value: object

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True)
class ListSpec:
    items: tuple[InputSpec, ...]
    is_tuple: bool = False

    def __str__(self) -> str:
        inside = ", ".join(map(str, self.items))
        return f"({inside})" if self.is_tuple else f"[{inside}]"


@dataclass(frozen=True, slots=True)
class DictSpec:
    items: tuple[tuple[str, InputSpec], ...]

    def __str__(self) -> str:
        return "{" + ", ".join(f"{k}: {v}" for k, v in self.items) + "}"


InputSpec = TensorSpec | ValueSpec | ListSpec | DictSpec


def parse_input(text: str) -> tuple[str, InputSpec]:
    """`x=f32[64,128]` → ("x", TensorSpec). Raises KpredictError that names the fault."""
    name, equals, spec = text.partition("=")
    name = name.strip()
    if not equals or not re.fullmatch(r"[A-Za-z_]\w*(\.\w+)*", name):
        raise KpredictError(f"Input {text!r} is not NAME=SPEC.", "Write x=f32[64,128] or n==3.")
    return name, _Parser(spec, text).whole()


def parse_directive(text: str) -> dict[str, InputSpec]:
    """`x=f32[64,128], mask=bool[64,128]` → specs by name. Raises KpredictError."""
    return join(parse_input(part) for part in split_top(text) if part.strip())


def join(pairs: Iterable[tuple[str, InputSpec]]) -> dict[str, InputSpec]:
    """Specs by top-level name; dotted names nest: digits make lists, other words dicts.

    A later spec for the same name replaces an earlier one.
    """
    plain: dict[str, InputSpec] = {}
    nested: dict[str, dict[str, InputSpec]] = {}
    for name, spec in pairs:
        head, dot, rest = name.partition(".")
        if dot:
            nested.setdefault(head, {})[rest] = spec
        else:
            plain[head] = spec
    for head, below in nested.items():
        inside = join(below.items())
        if all(k.isdigit() for k in inside):
            plain[head] = ListSpec(tuple(inside[k] for k in sorted(inside, key=int)))
        else:
            before = plain.get(head)
            kept = dict(before.items) if isinstance(before, DictSpec) else {}
            plain[head] = DictSpec(tuple((kept | inside).items()))
    return plain


def resolve(spec: InputSpec, dims: Mapping[str, int]) -> InputSpec:
    """The same spec with every named size a number. Raises KpredictError for an unknown name."""
    match spec:
        case TensorSpec():
            shape = tuple(_size(s, dims) for s in spec.shape)
            return TensorSpec(
                spec.dtype, shape, spec.stride, spec.device, spec.grad, spec.pinned,
                spec.channels_last, spec.high,
            )  # fmt: skip
        case ListSpec():
            return ListSpec(tuple(resolve(s, dims) for s in spec.items), spec.is_tuple)
        case DictSpec():
            return DictSpec(tuple((k, resolve(s, dims)) for k, s in spec.items))
        case ValueSpec():
            return spec


def unknown_dims(spec: InputSpec, dims: Mapping[str, int]) -> tuple[str, ...]:
    """Names of the dimensions that `dims` does not give, in order, once each."""
    match spec:
        case TensorSpec():
            names = [
                n
                for size in spec.shape
                if isinstance(size, str)
                for n in re.findall(r"[A-Za-z_]\w*", size)
                if n not in dims
            ]
        case ListSpec():
            names = [n for s in spec.items for n in unknown_dims(s, dims)]
        case DictSpec():
            names = [n for _, s in spec.items for n in unknown_dims(s, dims)]
        case ValueSpec():
            names = []
    return tuple(dict.fromkeys(names))


def _size(size: int | str, dims: Mapping[str, int]) -> int:
    if isinstance(size, int):
        return size
    missing = [n for n in re.findall(r"[A-Za-z_]\w*", size) if n not in dims]
    if missing:
        raise KpredictError(f"The size {size!r} is not known.", f"Give --dim {missing[0]}=N.")
    try:
        return _arithmetic(ast.parse(size, mode="eval").body, dims)
    except (SyntaxError, ZeroDivisionError):
        raise KpredictError(f"The size {size!r} is not arithmetic on whole numbers.") from None


def _arithmetic(node: ast.expr, dims: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(n)):
            return n
        case ast.Name(id=name):
            return dims[name]
        case ast.BinOp(left=a, op=op, right=b):
            x, y = _arithmetic(a, dims), _arithmetic(b, dims)
            match op:
                case ast.Add():
                    return x + y
                case ast.Sub():
                    return x - y
                case ast.Mult():
                    return x * y
                case ast.FloorDiv() | ast.Div():
                    return x // y
    raise SyntaxError


def split_top(text: str, separator: str = ",") -> list[str]:
    """Split at separators that are outside brackets and quotes."""
    parts, depth, start, quote = [], 0, 0, ""
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == separator and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]


_TENSOR = re.compile(r"\s*([A-Za-z]\w*)\s*\[([^\[\]]*)\]")
_STRIDES = re.compile(r"\s*\(([\d\s,]*)\)")
_BOUND = re.compile(r"\s*<\s*(\d+)")
_MARK = re.compile(r"\s*@\s*(\w+)")
_KEY = re.compile(r"\s*(?:(\w+)|'([^']*)'|\"([^\"]*)\")\s*:")


class _Parser:
    """Recursive descent over one spec."""

    def __init__(self, text: str, whole: str) -> None:
        self.text = text
        self.whole_text = whole
        self.at = 0

    def error(self, message: str, hint: str = "Write x=f32[64,128] or n==3.") -> KpredictError:
        return KpredictError(f"Input {self.whole_text.strip()!r}: {message}.", hint)

    def whole(self) -> InputSpec:
        text = self.text.strip()
        if text.startswith("="):
            return ValueSpec(_literal(text[1:].strip()))
        spec = self.spec()
        if self.text[self.at :].strip():
            raise self.error(f"{self.text[self.at :].strip()!r} is left over")
        return spec

    def spec(self) -> InputSpec:
        self.at = len(self.text) - len(self.text[self.at :].lstrip())
        rest = self.text[self.at :]
        if _TENSOR.match(rest):
            return self.tensor()
        if rest[:1] in "[(" and rest:
            self.at += 1
            closing = "]" if rest[0] == "[" else ")"
            return ListSpec(tuple(self.sequence(closing)), is_tuple=closing == ")")
        if rest[:1] == "{":
            self.at += 1
            return self.mapping()
        return self.value()

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()
        return match

    def tensor(self) -> TensorSpec:
        head = self.take(_TENSOR)
        assert head is not None
        dtype = DTYPES.get(head[1])
        if dtype is None:
            near = get_close_matches(head[1], DTYPES, 1, 0.5)
            guess = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(DTYPES)}."
            raise self.error(f"no dtype is called {head[1]!r}", guess)
        shape: list[int | str] = []
        for size in (s.strip() for s in head[2].split(",") if s.strip()):
            if not re.fullmatch(r"[\w\s+*/-]+", size):
                raise self.error(f"{size!r} is not a size")
            shape.append(int(size.replace("_", "")) if re.fullmatch(r"[\d_]+", size) else size)
        strides = self.take(_STRIDES)
        stride = tuple(int(s) for s in strides[1].split(",") if s.strip()) if strides else None
        if stride is not None and len(stride) != len(shape):
            raise self.error(f"{len(shape)} sizes but {len(stride)} strides")
        bound = self.take(_BOUND)
        marks: set[str] = set()
        while mark := self.take(_MARK):
            if mark[1] not in MARKS:
                raise self.error(f"no mark is called {mark[1]!r}", f"Known: {', '.join(MARKS)}.")
            marks.add(mark[1])
        if "channels_last" in marks and len(shape) not in (4, 5):
            raise self.error("channels_last needs 4 or 5 dimensions")
        return TensorSpec(
            dtype, tuple(shape), stride, "cpu" if marks & {"cpu", "pinned"} else "cuda",
            "grad" in marks, "pinned" in marks, "channels_last" in marks,
            int(bound[1]) if bound else None,
        )  # fmt: skip

    def sequence(self, closing: str) -> Iterable[InputSpec]:
        while True:
            if self.closes(closing):
                return
            yield self.spec()
            if not self.take(re.compile(r"\s*,")) and not self.text[self.at :].lstrip().startswith(
                closing
            ):
                raise self.error(f"{closing!r} is missing")

    def mapping(self) -> DictSpec:
        items: list[tuple[str, InputSpec]] = []
        while not self.closes("}"):
            key = self.take(_KEY)
            if key is None:
                raise self.error("a dict is {name: spec, ...}")
            items.append((key[1] or key[2] or key[3] or "", self.spec()))
            if not self.take(re.compile(r"\s*,")) and not self.text[self.at :].lstrip().startswith(
                "}"
            ):
                raise self.error("'}' is missing")
        return DictSpec(tuple(items))

    def closes(self, closing: str) -> bool:
        return self.take(re.compile(rf"\s*{re.escape(closing)}")) is not None

    def value(self) -> ValueSpec:
        match = self.take(re.compile(r"\s*('[^']*'|\"[^\"]*\"|[^,\]\)}]+)"))
        word = match[1].strip() if match else ""
        if not word:
            raise self.error("nothing follows the name")
        if word in DTYPES:
            raise self.error(f"{word} has no shape", f"Write {word}[64,128], or {word}[].")
        value = _literal(word)
        if isinstance(value, str) and value == word and not re.fullmatch(r"[\w.:/+-]+", word):
            raise self.error(f"{word!r} is no tensor and no value", f'Text is written "{word}".')
        return ValueSpec(value)


def _literal(word: str) -> object:
    """A Python literal, else the text itself."""
    try:
        return ast.literal_eval(word)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return word
