"""How calls are checked against type hints while tests run; see conftest."""

from typing import BinaryIO, Self, TextIO

import numpy as np
from beartype import BeartypeConf, FrozenDict, beartype

typechecker = beartype(
    conf=BeartypeConf(
        is_pep484_tower=True,  # An int is a float.
        # NumPy's int is an int, what is open in memory is a file, and methods are checked one
        # by one, without their class.
        hint_overrides=FrozenDict(
            {int: int | np.integer, Self: object, BinaryIO: object, TextIO: object}
        ),
    )
)
