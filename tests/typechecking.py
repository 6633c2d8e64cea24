"""How calls are checked against type hints while tests run; see conftest."""

from beartype import BeartypeConf, beartype

typechecker = beartype(conf=BeartypeConf(is_pep484_tower=True))  # An int is a float.
