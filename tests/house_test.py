"""The plan of the house: who may import whom, and what may stand where.

Every rule is a function from (module name, source) to violations, so that the
tests can also be shown a bad source.
"""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parent.parent
PACKAGE = "nsode_jax"

# A room imports only from rooms above it. The command lines come last and do
# not import each other.
ROOMS = (
    "system",
    "expressions",
    "dynamics",
    "tables",
    "data",
    "modeling",
    "training",
    "decoding",
    "observed",
    "fitting",
    "residuals",
    "selection",
    "search",
    "results",
    "reporting",
    "discovery",
    "baselines",
    "evaluation",
    "console",
    "app",
    "config",
)
COMMANDS = ("train", "generate", "discover", "evaluate")
# They import the rooms, never the reverse. The package's __init__ makes the first two its own.
OUTSIDE = ("configs", "data_builders", "tests")

WITHOUT_JAX = ("expressions", "dynamics")
JAX_FAMILY = ("jax", "jaxlib", "flax", "optax", "orbax", "grain")

EXECUTORS = ("eval", "exec", "sympify", "parse_expr")
THE_ONE_EVAL = f"{PACKAGE}.expressions.expression"
THE_PMAP_FILE = f"{PACKAGE}.training.parallel"


def module_name(path: pathlib.Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources() -> dict[str, str]:
    """Module name -> source, for every file of the package."""
    files = sorted((ROOT / PACKAGE).rglob("*.py"))
    return {module_name(path): path.read_text(encoding="utf-8") for path in files}


def imported_names(source: str) -> list[str]:
    """Dotted name of everything a source imports, `from a import b` as `a.b`."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            names += [f"{start}.{alias.name}" for alias in node.names]
    return names


def attribute_chains(source: str) -> list[str]:
    """Every chain of attributes in a source, such as `jax.pmap`."""
    return [ast.unparse(n) for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Attribute)]


def rank(room: str) -> int | None:
    """Position of a room; all command lines share the last. None: not a room."""
    if room in COMMANDS:
        return len(ROOMS)
    return ROOMS.index(room) if room in ROOMS else None


def import_direction(module: str, source: str) -> list[str]:
    room = module.split(".")[1] if "." in module else None
    if room is None:  # The package's own __init__ may re-export anything.
        return []
    if rank(room) is None:
        return [f"{module}: {room} is not a room of the house"]
    violations = []
    for name in imported_names(source):
        first, *rest = name.split(".")
        if name.startswith("."):
            violations.append(f"{module}: relative import {name}")
        elif {first, *(rest[:1] if first == PACKAGE else [])} & set(OUTSIDE):
            if room not in COMMANDS:
                violations.append(f"{module} imports {name}")
        elif first == PACKAGE and rest and rest[0] != room:
            target = rank(rest[0])
            if target is None or target >= rank(room):
                violations.append(f"{module} imports {name}")
    return violations


def jax_free_rooms(module: str, source: str) -> list[str]:
    if module.split(".")[1:2] not in [[room] for room in WITHOUT_JAX]:
        return []
    return [
        f"{module} imports {name}"
        for name in imported_names(source)
        if name.split(".")[0] in JAX_FAMILY
    ]


def pmap_in_one_file(module: str, source: str) -> list[str]:
    names = imported_names(source) + attribute_chains(source)
    found = [name for name in names if name.split(".")[-1] == "pmap"]
    return [f"{module} uses {name}" for name in found if module != THE_PMAP_FILE]


def no_linen(module: str, source: str) -> list[str]:
    names = imported_names(source) + attribute_chains(source)
    return [f"{module} uses {n}" for n in names if n == "flax.linen" or "flax.linen." in n]


def no_executed_text(module: str, source: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            # `model.eval()` of nnx runs no text; `builtins.eval` and SymPy's do.
            if called in EXECUTORS or called.startswith("builtins."):
                found.append(called)
            elif called.split(".")[-1] in ("sympify", "parse_expr"):
                found.append(called)
    if module == THE_ONE_EVAL and "eval" in found:
        found.remove("eval")
    return [f"{module} calls {called}" for called in found]


def no_utils(module: str, source: str) -> list[str]:
    return [module] if module.split(".")[-1] in ("utils", "util", "helpers", "misc") else []


RULES = (
    import_direction,
    jax_free_rooms,
    pmap_in_one_file,
    no_linen,
    no_executed_text,
    no_utils,
)


def circle(imports: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle, wherever in the file they do; or none."""
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> list[str]:
        if module in path:
            return [*path[path.index(module) :], module]
        if module not in done:
            for other in sorted(imports[module]):
                if found := visit(other, (*path, module)):
                    return found
            done.add(module)
        return []

    return next((found for module in sorted(imports) if (found := visit(module, ()))), [])


def imported_modules(modules: dict[str, str]) -> dict[str, set[str]]:
    """Module -> the modules of the package that it imports, from their sources."""

    def module_of(name: str) -> str | None:
        if name in modules:  # `from nsode_jax.room import module`
            return name
        owner = name.rpartition(".")[0]
        return owner if owner in modules else None

    found = {m: {module_of(name) for name in imported_names(s)} for m, s in modules.items()}
    return {module: names - {None, module} for module, names in found.items()}


def test_no_modules_import_each_other_in_a_circle():
    assert not circle(imported_modules(sources()))


@pytest.mark.parametrize(
    "later", ["from p.a import f", "if TYPE_CHECKING:\n  from p import a", "def f():\n  import p.a"]
)
def test_a_circle_is_found_wherever_it_is_closed(later):
    assert circle(imported_modules({"p.a": "from p import b", "p.b": later})) == [
        "p.a",
        "p.b",
        "p.a",
    ]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_house_keeps_its_rules(rule):
    violations = [v for module, source in sources().items() for v in rule(module, source)]
    assert not violations, "\n".join(violations)


@pytest.mark.parametrize(
    ("rule", "module", "source"),
    [
        (import_direction, "expressions.canonical", "from nsode_jax.dynamics import solve"),
        (import_direction, "data.bits", "import nsode_jax.modeling.transformer"),
        (import_direction, "training.loop", "def f():\n  from nsode_jax import config"),
        (import_direction, "discovery.rank", "from nsode_jax.evaluation.metrics import r2"),
        (import_direction, "evaluate", "from nsode_jax.discover import main"),
        (import_direction, "decoding.grammar", "from . import beam_search"),
        (import_direction, "data.generate", "import data_builders.nsode"),
        (import_direction, "data.generate", "import nsode_jax.data_builders.nsode"),
        (import_direction, "config", "from nsode_jax.configs import small"),
        (import_direction, "cellar.wine", ""),
        (jax_free_rooms, "expressions.operators", "import jax.numpy as jnp"),
        (jax_free_rooms, "dynamics.solve", "if True:\n  from jax import numpy"),
        (pmap_in_one_file, "training.loop", "import jax\nstep = jax.pmap(len)"),
        (pmap_in_one_file, "decoding.beam_search", "from jax import pmap"),
        (no_linen, "modeling.transformer", "from flax import linen as nn"),
        (no_linen, "modeling.transformer", "import flax\nx = flax.linen.Dense"),
        (no_executed_text, "discover", "eval('1')"),
        (no_executed_text, "expressions.expression", "eval('1')\neval('2')"),
        (no_executed_text, "expressions.canonical", "import sympy\nsympy.sympify('y')"),
        (no_executed_text, "config", "exec(open('x').read())"),
        (no_utils, "data.utils", ""),
    ],
)
def test_each_rule_can_fail(rule, module, source):
    assert rule(f"{PACKAGE}.{module}", source)


@pytest.mark.parametrize(
    ("rule", "module", "source"),
    [
        (import_direction, "evaluation.report", "from nsode_jax.selection.rank import rank"),
        (import_direction, "train", "from nsode_jax import config, configs"),
        (jax_free_rooms, "expressions.expression", "from jaxtyping import Float"),
        (pmap_in_one_file, "training.parallel", "import jax\njax.pmap(len)"),
        (no_linen, "modeling.transformer", "from flax import nnx"),
        (no_executed_text, "expressions.expression", "eval('1')"),
        (no_executed_text, "modeling.transformer", "model.eval()"),
    ],
)
def test_each_rule_allows_what_it_should(rule, module, source):
    assert not rule(f"{PACKAGE}.{module}", source)


def map_paths(readme: str) -> list[str]:
    """Paths of a page's map, relative to the repository.

    The map is the first block in ``` that begins with `nsode_jax/`. A line holds
    one or several names, two spaces or more, and words; indentation nests.
    """
    blocks = [block.partition("\n")[2] for block in readme.split("```")[1::2]]
    tree = next((block for block in blocks if block.lstrip().startswith(f"{PACKAGE}/")), "")
    paths, folders = [], []  # folders: (indentation, path) of the enclosing folders.
    for line in tree.splitlines():
        if not line.strip():
            continue
        indentation = len(line) - len(line.lstrip())
        while folders and folders[-1][0] >= indentation:
            folders.pop()
        parent = folders[-1][1] if folders else ""
        for name in line.strip().split("  ")[0].split():
            paths.append(parent + name)
            if name.endswith("/"):
                folders.append((indentation, parent + name))
    return paths


@pytest.mark.parametrize("page", ["README.md", "docs/map.md"])
def test_the_map_is_the_house(page):
    """The README draws the rooms, the documentation every file."""
    named = map_paths((ROOT / page).read_text(encoding="utf-8"))
    assert named, f"{page} has no map: a block in ``` that begins with {PACKAGE}/"
    missing = [path for path in named if not (ROOT / path).exists()]
    assert not missing, f"named in the map of {page}, but not there: {missing}"

    files = {p for p in (ROOT / PACKAGE).rglob("*.py") if p.name != "__init__.py"}
    # A room may be drawn without its files; then it counts as one piece.
    drawn = {str(pathlib.PurePosixPath(path)) for path in named}
    rooms_with_files = {str(pathlib.PurePosixPath(path).parent) for path in drawn}
    unnamed = []
    for path in sorted(files):
        name, room = path.relative_to(ROOT).as_posix(), path.parent.relative_to(ROOT).as_posix()
        if name not in drawn and (room in rooms_with_files or room not in drawn):
            unnamed.append(name)
    assert not unnamed, f"not named in the map of {page}: {unnamed}"
    assert page == "README.md" or len(drawn) > len(files), "the map names every file"


def test_the_map_is_read_as_drawn():
    readme = """Words.
```
pip install nsode-jax
```
```
nsode_jax/
  expressions/   an equation as data
    operators.py   the table
  modeling/      the network: transformer.py
  train.py generate.py     command lines
configs/         paper.py
```
"""
    assert map_paths(readme) == [
        "nsode_jax/",
        "nsode_jax/expressions/",
        "nsode_jax/expressions/operators.py",
        "nsode_jax/modeling/",
        "nsode_jax/train.py",
        "nsode_jax/generate.py",
        "configs/",
    ]


def test_ranks_are_not_promoted():
    import jax

    with pytest.raises(ValueError, match="rank_promotion"):
        jax.numpy.ones((2, 3)) + jax.numpy.ones((3,))


def test_calls_are_checked_against_their_hints():
    """Shapes across arguments, and types where no hint has an array."""
    import numpy as np
    from beartype.roar import BeartypeCallHintViolation
    from jaxtyping import TypeCheckError

    from nsode_jax.fitting.fit import Origin
    from nsode_jax.observed.smoothing import is_clean

    with pytest.raises(TypeCheckError, match="parameters of .*is_clean"):
        is_clean(np.arange(9.0), np.arange(8.0))
    with pytest.raises(BeartypeCallHintViolation, match="source"):
        Origin(3)  # pyright: ignore[reportArgumentType]
