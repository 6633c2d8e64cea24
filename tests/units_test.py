"""Units are read from the names of columns, and nothing else is taken for one."""

import pytest

from nsode_jax.tables.units import unit_of


@pytest.mark.parametrize(
    ("name", "is_time", "unit"),
    [
        ("time_h", True, "h"),
        ("t [min]", True, "min"),
        ("time (years)", True, "years"),
        ("day [days since 2020-03-01]", True, "day"),
        ("hours", True, ""),
        ("mass (g/L)", False, "g/L"),
        ("dose_mg", False, "mg"),
        ("yeast_amount", False, ""),
        ("series_a", False, ""),
        ("count (2)", False, ""),
        ("y", False, ""),
        ("", True, ""),
    ],
)
def test_unit_of(name, is_time, unit):
    assert unit_of(name, is_time=is_time) == unit
