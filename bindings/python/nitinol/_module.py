"""Module, which layers and models derive from, and what walks over its Variables."""

from __future__ import annotations

import copyreg
from typing import Any, Callable, Iterator, Mapping, Self

from nitinol import _ext
from nitinol._ext import Device, DType, ModuleBase, Tensor, Variable, parameter
from nitinol._hints import of_parameters
from nitinol._typing import TensorLike


def children(value: Any) -> Iterator[tuple[str, Any]]:
    """What a module, list, tuple or dict holds, by name."""
    if isinstance(value, Module):
        for name, child in vars(value).items():
            if name == "layers" and isinstance(value, Sequential):
                yield from children(child)  # by position, as in C++ and PyTorch: "0.weight"
            else:
                yield name, child
    elif isinstance(value, (list, tuple)):
        for i, element in enumerate(value):
            yield str(i), element
    elif isinstance(value, Mapping):
        for key, element in value.items():
            yield str(key), element


def walk(path: str, value: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """Every Variable and Module below `value`, each once, in the order of the attributes."""
    if isinstance(value, (Variable, Module, list, dict)):
        # The cell of a Variable is what is shared, not its object of Python.
        key = hash(value) if isinstance(value, Variable) else id(value)
        if key in seen:
            return
        seen.add(key)
    if isinstance(value, (Variable, Module)):
        yield path, value
    for name, child in children(value):
        yield from walk(f"{path}.{name}" if path else name, child, seen)


class Module(ModuleBase):
    """What has Variables. Assigning a Tensor to an attribute that is a Variable sets its value.

    What a compiled function reads of a module it notes: when another object is assigned to the
    attribute, it is recorded anew. Contents of lists and dicts it does not watch.
    """

    training: bool = True

    def __init_subclass__(cls) -> None:
        if cls.__module__.startswith("nitinol._") and "__init__" in vars(cls):
            setattr(cls, "__init__", of_parameters(vars(cls)["__init__"]))

    def __init__(self) -> None:  # need not be called
        pass

    _parts: Mapping[str, type[Module]] = {}  # classes of what C++ gives as dicts, or lists of them

    def _take(self, attributes: dict[str, Any]) -> None:
        def made(part: type[Module], attributes: dict[str, Any]) -> Module:
            module = part.__new__(part)
            module._take(attributes)
            return module

        for name, value in attributes.items():
            if part := self._parts.get(name):
                many = isinstance(value, list)
                value = [made(part, one) for one in value] if many else made(part, value)
            setattr(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        make = copyreg.__newobj__  # type: ignore[attr-defined]
        return make, (type(self),), dict(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    def named_variables(self) -> dict[str, Variable]:
        """All Variables by path, each once."""
        return {path: v for path, v in walk("", self, set()) if isinstance(v, Variable)}

    def named_parameters(self) -> dict[str, Variable]:
        """Those that gradients flow to."""
        return {path: v for path, v in self.named_variables().items() if v.tracks_gradient}

    def parameters(self) -> list[Variable]:
        """Those that gradients flow to, for optimizers."""
        return list(self.named_parameters().values())

    def buffers(self) -> dict[str, Variable]:
        """The others: running means, counts."""
        return {path: v for path, v in self.named_variables().items() if not v.tracks_gradient}

    def modules(self) -> list[Module]:
        """This module and all below it."""
        return [m for _, m in walk("", self, set()) if isinstance(m, Module)]

    def apply(self, f: Callable[[Module], object]) -> Self:
        """Calls f with this module and each below it, the outer ones first: to set their values."""
        for module in self.modules():
            f(module)
        return self

    def train(self, value: bool = True) -> Self:
        """Switches dropout and running statistics on. A compiled function has a Plan for each mode."""
        for module in self.modules():
            module.training = value
        return self

    def eval(self) -> Self:
        """Switches them off."""
        return self.train(False)

    def to(self, *targets: Device | DType | str) -> Self:
        """Gives the module new Variables on another device or of another floating dtype. Call it
        before optimizers are made."""
        made: dict[int, Variable] = {}  # by hash: the cell is what is shared
        seen: set[int] = set()
        dtypes = [t for t in targets if isinstance(t, DType)]
        others = [t for t in targets if not isinstance(t, DType)]

        def moved(variable: Variable) -> Variable:
            value = variable.get().to(*others)
            if value.dtype.is_floating:
                value = value.to(*dtypes)
            return parameter(value) if variable.tracks_gradient else Variable(value)

        def replaced(value: Any) -> Any:
            if isinstance(value, Variable):
                if hash(value) not in made:
                    made[hash(value)] = moved(value)
                return made[hash(value)]
            if type(value) is tuple:
                parts = tuple(replaced(child) for child in value)
                return parts if any(a is not b for a, b in zip(parts, value)) else value
            if id(value) in seen:
                return value
            seen.add(id(value))
            if isinstance(value, Module):
                for name, child in list(vars(value).items()):
                    new = replaced(child)
                    if new is not child:
                        del value.__dict__[name]
                        setattr(value, name, new)
            elif isinstance(value, (list, dict)):
                for key in range(len(value)) if isinstance(value, list) else list(value):
                    value[key] = replaced(value[key])
            return value

        replaced(self)
        return self

    def state_dict(self) -> dict[str, Tensor]:
        """The values of all Variables by path."""
        return {path: v.get() for path, v in self.named_variables().items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Sets all Variables from values by path: of just these names, shapes and dtypes.
        nn.load_pytorch() takes those of PyTorch, whose layouts are others."""
        for path, value in state.items():
            if (
                type(value).__module__.partition(".")[0] == "torch"
            ):  # a square weight would fit, too
                raise TypeError(
                    f"load_state_dict: {path} is PyTorch's, which has other layouts: "
                    "nn.load_pytorch(state, module) knows them; arrays are taken as they are"
                )
        variables = self.named_variables()
        absent = sorted(variables.keys() - state.keys())
        unknown = sorted(state.keys() - variables.keys())
        if absent or unknown:
            raise _ext.ArgumentError(
                f"load_state_dict: missing: {', '.join(absent) or 'none'}; "
                f"unknown: {', '.join(unknown) or 'none'}"
            )
        values = {path: _ext.asarray(state[path]) for path in variables}
        for path, variable in variables.items():
            value = values[path]
            if value.shape != variable.shape or value.dtype != variable.dtype:
                raise _ext.ShapeError(
                    f"load_state_dict: {path}: expected {variable.dtype}{list(variable.shape)}, "
                    f"got {value.dtype}{list(value.shape)}"
                )
        for path, variable in variables.items():
            variable.set(values[path].to(variable.device))

    def __repr__(self) -> str:
        lines = [type(self).__name__]
        count = 0
        above: list[str] = []  # the paths of the modules around, but for this one
        for path, found in walk("", self, set()):
            if found is self:
                continue
            while above and not path.startswith(above[-1] + "."):
                above.pop()
            indent = "  " * (len(above) + 1)
            name = path[len(above[-1]) + 1 :] if above else path
            if isinstance(found, Module):
                above.append(path)
                lines.append(f"{indent}{name}: {type(found).__name__}")
            else:
                count += found.size
                lines.append(f"{indent}{name}: {found.dtype}{list(found.shape)}")
        return "\n".join(lines) + f"\n{count:,} elements"


class Sequential(Module):
    """Modules and functions, one after another."""

    def __init__(self, *layers: Callable[[Any], Tensor]) -> None:
        for layer in layers:
            if not callable(layer):
                raise TypeError(f"Sequential: {layer!r} cannot be called")
        self.layers: tuple[Callable[[Any], Tensor], ...] = tuple(layers)

    def __call__(self, x: TensorLike) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x  # type: ignore[return-value]  # a Tensor, unless there are no layers

    def __getitem__(self, i: int) -> Any:
        return self.layers[i]

    def __len__(self) -> int:
        return len(self.layers)
