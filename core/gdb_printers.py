"""What gdb shows for tensors: shape, dtype, place and first values.

    (gdb) print x
    $1 = float32[2, 3] on cpu at 0x7ffff0000040 = {1, 2, 3, 4, 5, 6}

Reads memory and calls nothing, so it works on a core file, in the middle of a signal handler and in
a program that has gone wrong. gdb loads it with the library, beside which it is installed under the
name that gdb looks for (docs/install.md says when gdb has to be told to trust it). It needs the
types, so some source that uses tensors must be compiled with -g; the library itself need not.
"""

import struct

import gdb
import gdb.printing

FIRST = 8  # values shown
MOST_DIMENSIONS = 8

# Name, bytes and struct format of each enumerator of nitinol::DType.
DTYPES = {
    "boolean": ("bool", 1, "?"),
    "u8": ("uint8", 1, "B"),
    "i8": ("int8", 1, "b"),
    "u16": ("uint16", 2, "<H"),
    "i16": ("int16", 2, "<h"),
    "u32": ("uint32", 4, "<I"),
    "i32": ("int32", 4, "<i"),
    "u64": ("uint64", 8, "<Q"),
    "i64": ("int64", 8, "<q"),
    "f16": ("float16", 2, "<e"),
    "bf16": ("bfloat16", 2, None),
    "f32": ("float32", 4, "<f"),
    "f64": ("float64", 8, "<d"),
}


class Broken(Exception):
    """What is in memory cannot be a tensor."""


def number(value):
    return int(value.cast(gdb.lookup_type("long long")))


def sizes_of(dims):
    count = number(dims["size_"])
    if not 0 <= count <= MOST_DIMENSIONS:
        raise Broken("%d dimensions" % count)
    values = dims["values_"]["_M_elems"]
    return [int(values[i]) for i in range(count)]


def list_of(sizes):
    return "[%s]" % ", ".join(str(size) for size in sizes)


def dtype_of(value):
    for field in value.type.strip_typedefs().fields():
        if field.enumval == number(value):
            return DTYPES[field.name.split("::")[-1]]
    raise Broken("dtype %d" % number(value))


def element(bytes_, layout):
    if layout is None:  # bfloat16: the upper half of a float32
        return "%.4g" % struct.unpack("<f", b"\0\0" + bytes_)[0]
    value = struct.unpack(layout, bytes_)[0]
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return (
        "%.*g" % ({"<e": 5, "<f": 9}.get(layout, 17), value)
        if value != shorter(value, layout)
        else "%g" % value
    )


def shorter(value, layout):
    """The value that the six digits of %g mean, rounded as it is stored."""
    try:
        return struct.unpack(layout, struct.pack(layout, float("%g" % value)))[0]
    except OverflowError:
        return value


def first_values(address, sizes, strides, bytes_each, layout):
    """Texts of the first elements in logical order, and whether there are more."""
    count = 1
    for size in sizes:
        count *= size
    memory = gdb.selected_inferior()
    texts = []
    index = [0] * len(sizes)
    for _ in range(min(count, FIRST)):
        offset = sum(i * stride for i, stride in zip(index, strides))
        raw = memory.read_memory(address + offset * bytes_each, bytes_each)
        texts.append(element(bytes(raw), layout))
        for axis in reversed(range(len(sizes))):
            index[axis] += 1
            if index[axis] < sizes[axis]:
                break
            index[axis] = 0
    return texts, count > FIRST


def describe(data):
    """Of a TensorData."""
    spec = data["spec"]
    name, bytes_each, layout = dtype_of(spec["dtype"])
    sizes = sizes_of(spec["shape"])
    text = ("weak " if bool(spec["is_weak"]) else "") + name + list_of(sizes)
    device = spec["device"]
    text += " on %s" % str(device["kind"]).rsplit("::", 1)[-1]
    if number(device["index"]) != 0:
        text += " %d" % number(device["index"])
    where = str(data["memory"]["_M_i"]).rsplit("::", 1)[-1]  # of a std::atomic
    if where == "number":
        raw = int(data["number"]).to_bytes(8, "little")[:bytes_each]
        return text + " = {%s}" % element(raw, layout)
    storage = data["storage"]["px"]
    if where == "pending":
        return text + ", not computed before somebody looks"
    if int(storage) == 0:
        return text + ", without memory"
    address = int(storage.dereference()["data"]) + int(data["offset"]) * bytes_each
    text += " at 0x%x" % address
    try:
        values, more = first_values(address, sizes, sizes_of(data["strides"]), bytes_each, layout)
    except gdb.MemoryError:
        return text + " (memory that cannot be read)"
    return text + " = {%s%s}" % (", ".join(values), ", ..." if more else "")


class Printer:
    """to_string() of a class below, or what is wrong with the memory."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        try:
            return self.text()
        except (Broken, gdb.MemoryError) as error:
            return "<not a %s: %s>" % (self.value.type.unqualified().name, error)
        except gdb.error:
            # Sources that only pass tensors on do not say what they are made of.
            return "<a %s; compile a source that uses it with -g>" % self.value.type.name


class TensorPrinter(Printer):
    def text(self):
        data = self.value["data_"]["px"]
        return "undefined tensor" if int(data) == 0 else describe(data.dereference())


class VariablePrinter(Printer):
    def text(self):
        cell = self.value["cell_"]["px"]
        if int(cell) == 0:
            return "undefined Variable"
        data = cell.dereference()["value"]["data_"]["px"]
        text = "undefined" if int(data) == 0 else describe(data.dereference())
        return "Variable %d: %s" % (int(cell.dereference()["id"]), text)


class DimsPrinter(Printer):
    def text(self):
        return list_of(sizes_of(self.value))


class ScalarPrinter(Printer):
    def text(self):
        kind = number(self.value["kind_"])
        if kind == 0:
            return "true" if int(self.value["integer_"]) else "false"
        return str(self.value["integer_"] if kind == 1 else self.value["floating_"])


def printers():
    collection = gdb.printing.RegexpCollectionPrettyPrinter("nitinol")
    for name, printer in (
        ("Tensor", TensorPrinter),
        ("Variable", VariablePrinter),
        ("Dims", DimsPrinter),
        ("Scalar", ScalarPrinter),
    ):
        collection.add_printer(name, "^nitinol::%s$" % name, printer)
    return collection


gdb.printing.register_pretty_printer(gdb.current_objfile(), printers(), replace=True)
