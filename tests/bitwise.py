"""Whether data are the same to the last bit."""

import dataclasses

import numpy as np


def assert_same(one, other, where):
    """The same data, bit by bit; of dataclasses, field by field."""
    assert type(one) is type(other) or {type(one), type(other)} <= {float, np.float64}, where
    if dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            name = field.name
            assert_same(getattr(one, name), getattr(other, name), f"{where}.{name}")
    elif isinstance(one, tuple):
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_same(a, b, f"{where}[{i}]")
    elif isinstance(one, float | np.ndarray):
        a, b = np.asarray(one), np.asarray(other)
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes()), where
    else:
        assert one == other, where
