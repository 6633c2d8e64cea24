"""Config files outside, typed frozen dataclasses inside."""

from __future__ import annotations

import dataclasses
import difflib
import importlib.resources
import re
import runpy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from absl import flags
from ml_collections import ConfigDict

from nsode_jax.console.terminal import output_may_end
from nsode_jax.data.generate import GenerationConfig
from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.dynamics.corrupt import CorruptionConfig
from nsode_jax.dynamics.solve import SolverConfig
from nsode_jax.expressions.coupled import SystemConfig
from nsode_jax.expressions.sampling import EquationPrior
from nsode_jax.modeling.config import ModelConfig
from nsode_jax.training.config import Config, TrainingConfig

_SECTIONS = {
    "system": SystemConfig,
    "prior": EquationPrior,
    "solver": SolverConfig,
    "generation": GenerationConfig,
    "corruption": CorruptionConfig,
    "model": ModelConfig,
    "training": TrainingConfig,
}

_NO_NUMBER = re.compile(r"(invalid literal for int|could not convert string to float).*")

_FOLLOWING = {"model": ("vocabulary_size", "num_states")}
"""Fields that follow from `system` and are no choice of a config file."""


def defaults() -> ConfigDict:
    """All fields at their defaults (the paper's where it gives one), locked.

    Config files start from this, so every field can be overridden from the
    command line and an unknown one is an error.
    """
    config = ConfigDict()
    for name, section in _SECTIONS.items():
        others = (*_SECTIONS, *_FOLLOWING.get(name, ()))
        fields = {f.name: f.default for f in dataclasses.fields(section) if f.name not in others}
        config[name] = ConfigDict(fields, type_safe=True)
    return config.lock()


def from_config_dict(config: ConfigDict) -> Config:
    """The typed config of a `ConfigDict` made by `defaults`.

    Raises:
      ValueError: if a value is out of range.
    """
    values = config.to_dict()
    system = SystemConfig(**values["system"])
    return Config(
        GenerationConfig(
            prior=EquationPrior(**values["prior"]),
            solver=SolverConfig(**values["solver"]),
            system=system,
            **values["generation"],
        ),
        CorruptionConfig(**values["corruption"]),
        ModelConfig(
            vocabulary_size=Vocabulary.of(system).size,
            num_states=system.num_states,
            **values["model"],
        ),
        TrainingConfig(**values["training"]),
    )


def shipped() -> dict[str, Path]:
    """The config files that come with the package, by name."""
    folder = importlib.resources.files("nsode_jax.configs")
    files = sorted(Path(str(file)) for file in folder.iterdir() if file.name.endswith(".py"))
    return {path.stem: path for path in files if path.stem != "__init__"}


def find(name_or_path: str | Path) -> Path:
    """A config file by its path, or a shipped one by its name: `configs/small.py`, `small`.

    Raises:
      FileNotFoundError: if there is no such file.
    """
    path = Path(name_or_path)
    if path.is_file():
        return path
    there = shipped()
    if str(name_or_path) not in there:
        raise FileNotFoundError(
            f"no config {str(name_or_path)!r}: neither a file nor one of the shipped ones "
            f"({', '.join(there)})"
        )
    return there[str(name_or_path)]


def load(name_or_path: str | Path) -> Config:
    """The config of a file that defines `get_config()`, by its path or its shipped name.

    As for `--config`, what stands behind a colon, `file.py:8`, is the argument of `get_config`.

    Raises:
      FileNotFoundError: if there is no such file.
      ValueError: if a value is out of range.
    """
    path, argument = _divided(name_or_path)
    return from_config_dict(runpy.run_path(str(find(path)))["get_config"](*argument))


def flags_parser(program: str) -> Callable[[Sequence[str]], list[str]]:
    """A parser of flags for `absl.app.run` that refuses bad ones in one line.

    A missing config, an unknown field or a value of the wrong type end the
    program with exit code 2; absl and ml_collections would print a traceback.
    """
    there = f"give --config, a file or one of {', '.join(shipped())}"
    flags.register_validator("config", lambda config: config is not None, message=there)

    def parse(argv: Sequence[str]) -> list[str]:
        if {"--help", "-help", "-h"} & set(argv):
            with output_may_end():
                _print_help(program)
            raise SystemExit(0)
        try:
            rest = flags.FLAGS(_with_config_found(argv))
            flags.FLAGS.config["generation"]  # One that could not be loaded shows only here.
            return rest
        except (AttributeError, KeyError) as error:
            if "get_config" in str(error):
                message = "the file of --config has no function get_config(); see configs/small.py"
            else:
                message = _unknown_field(re.findall(r"\w+", str(error))[0])  # Its name comes first.
        except SyntaxError as error:
            message = f"the file of --config is no Python: {error.msg}, line {error.lineno}"
        except flags.UnrecognizedFlagError as error:
            message = f"{error} (--help lists the flags)"
        except (flags.Error, OSError, TypeError, ValueError) as error:
            # Of a file that cannot be loaded, the last line tells why.
            lines = str(error).splitlines()
            if re.search("(loading|parsing) config file", lines[0]):
                message = lines[-1].strip()
            else:
                message = lines[0].strip().removeprefix("flag --config=None: ")
                message = _NO_NUMBER.sub("this is no number", message)
        print(f"{program}: error: {message}", file=sys.stderr)
        raise SystemExit(2)

    return parse


def name_of(file: str | Path) -> str:
    """What runs and data sets of a config file are called, whatever its argument."""
    return Path(_divided(file)[0]).stem


def _divided(name_or_path: str | Path) -> tuple[str, list[str]]:
    """A config and, behind the first colon, the argument of its `get_config`, if there is one."""
    if Path(name_or_path).is_file():
        return str(name_or_path), []
    path, *argument = str(name_or_path).split(":", 1)
    return path, argument


def _unknown_field(field: str) -> str:
    """What to say of a field or a section that there is not."""
    known = {name: [name] for name in _SECTIONS}
    for name, section in _SECTIONS.items():
        for one in dataclasses.fields(section):
            known.setdefault(one.name, []).append(f"{name}.{one.name}")
    near = difflib.get_close_matches(field, known, n=1)
    meant = f"; did you mean {' or '.join(known[near[0]])}?" if near else ""
    return f"the config has no field {field} there{meant}"


def _print_help(program: str) -> None:
    """What the command does, and its flags, also where it is a script of its own."""
    main = sys.modules["__main__"]
    is_main = program not in sys.modules
    about = main if is_main else sys.modules[program]
    print(f"{(about.__doc__ or '').strip()}\n\nflags:")
    print(flags.FLAGS.module_help(sys.argv[0] if is_main else program))


def _with_config_found(argv: Sequence[str]) -> list[str]:
    """The arguments with the path of the config where `--config` gives a name."""

    def path_of(value: str) -> str:
        path, argument = _divided(value)
        return ":".join([str(find(path)), *argument])

    found = list(argv)
    for place, argument in enumerate(found):
        option, equals, value = argument.partition("=")
        if option == "--":
            break
        if option not in ("--config", "-config"):
            continue
        if equals:
            found[place] = f"{option}={path_of(value)}"
        elif place + 1 < len(found):
            found[place + 1] = path_of(found[place + 1])
    return found
