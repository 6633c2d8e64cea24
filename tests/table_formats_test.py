"""Tables of known numbers in many formats: read as they are, or refused; never misread."""

import gzip

import numpy as np
import pytest

from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.tables.table import read_measurements, read_table

# Delimiter, decimal mark, mark of thousands: as programs and countries write them.
FORMATS = {
    "plain CSV": (",", ".", ""),
    "tabs": ("\t", ".", ""),
    "spaces": (" ", ".", ""),
    "semicolons": (";", ".", ""),
    "American": (",", ".", ","),
    "American in tabs": ("\t", ".", ","),
    "German": (";", ",", "."),
    "German without thousands": (";", ",", ""),
    "German in tabs": ("\t", ",", "."),
    "French": (";", ",", "\u202f"),
    "Swedish": (";", ",", " "),
    "Swiss": (";", ".", "'"),
    "Swiss in tabs": ("\t", ".", "\u2019"),
    "international": (";", ".", "\u00a0"),
    "comma decimals in spaces": (" ", ",", ""),
    "apostrophes in commas": (",", ".", "'"),
    "German in commas": (",", ",", "."),
}


Line = tuple[str, int | None]
"""A line of a file, and which of the known rows it holds; None for any other."""


def draw(rng: np.random.Generator) -> tuple[list[float], list[float], int, int]:
    """Times, values, and the decimals of each."""
    n = int(rng.integers(10, 40))
    t_digits, y_digits = (int(rng.choice([0, 0, 1, 2, 3])) for _ in range(2))
    step = rng.uniform(0.5, 300) if t_digits else rng.integers(1, 400)
    start = 10 ** rng.uniform(-1, 6)
    y = start * np.exp(rng.choice([-1, 1]) * rng.uniform(0.01, 0.3) * np.arange(n))
    y += rng.choice([0, 0, -start])
    t = [round(float(step * i), t_digits) for i in range(n)]
    return t, [round(float(v), y_digits) for v in y], t_digits, y_digits


def write_number(x: float, digits: int, decimal: str, thousands: str) -> str:
    grouped = f"{x:,.{digits}f}"
    return grouped.replace(",", "\0").replace(".", decimal).replace("\0", thousands)


def write_lines(rng, t, y, digits, delimiter, decimal, thousands, extra: bool) -> list[Line]:
    """The table line by line, with a preamble, names, units and comments by chance."""

    def row(*cells: str) -> str:
        quoted = (f'"{c}"' if delimiter in c or rng.random() < quote else c for c in cells)
        return delimiter.join(quoted)

    quote = rng.choice([0.0, 0.0, 1.0])
    lines = []
    if extra and delimiter != " " and rng.random() < 0.5:
        pad = rng.choice(["", delimiter])
        preamble = [f"Method: growth{pad}", f"Operator: N. N.{pad}", pad][: rng.integers(1, 4)]
        lines += [(line, None) for line in preamble]
    if extra or rng.random() < 0.7:
        lines.append((row("time", rng.choice(["cells", "A1"])), None))
        if extra and rng.random() < 0.3:
            lines.append((row("h", "mg"), None))
    for number, pair in enumerate(zip(t, y)):
        cells = [write_number(v, d, decimal, thousands) for v, d in zip(pair, digits)]
        lines.append((row(*cells), number))
        if extra and rng.random() < 0.05:
            lines.append((str(rng.choice(["", delimiter.strip(), "# a comment"])), None))
    return lines


def write_table(rng, t, y, digits, delimiter, decimal, thousands, extra: bool) -> bytes:
    """The table as bytes, with its encoding and ends of line by chance."""
    lines = write_lines(rng, t, y, digits, delimiter, decimal, thousands, extra)
    text = rng.choice(["\n", "\r\n"]).join(line for line, _ in lines) + rng.choice(["", "\n"])
    raw = text.encode(rng.choice(["utf-8", "utf-8-sig", "utf-16"]))
    return gzip.compress(raw) if rng.random() < 0.1 else raw


def read_or_none(path, read=read_table, **options):
    """What is read; None if it is refused, in one line."""
    try:
        return read(path, **options)
    except TrajectoryError as error:
        assert str(error) and "\n" not in str(error)
        return None


def same(trajectory, t, y) -> bool:
    known = dict(zip(t, y))
    return trajectory.t.tolist() == list(known) and trajectory.y.tolist() == list(known.values())


@pytest.mark.parametrize("name", FORMATS)
def test_known_numbers_are_read_or_refused(tmp_path, name):
    rng = np.random.default_rng(sorted(FORMATS).index(name))
    path, read, drawn = tmp_path / "data.csv", 0, 40
    for i in range(drawn):
        t, y, *digits = draw(rng)
        path.write_bytes(write_table(rng, t, y, digits, *FORMATS[name], extra=i % 2 > 0))
        result = read_or_none(path)
        if result is not None:
            assert same(result[0], t, y), (path.read_bytes()[:300], result[0].y[:5], result[1])
            read += 1
    assert read > 0.5 * drawn  # Refusing is safe, but not an answer.


@pytest.mark.parametrize("name", FORMATS)
def test_the_options_decide_what_was_refused(tmp_path, name):
    rng = np.random.default_rng(100 + sorted(FORMATS).index(name))
    _, decimal, thousands = FORMATS[name]
    path = tmp_path / "data.csv"
    for _ in range(10):
        t, y, *digits = draw(rng)
        path.write_bytes(write_table(rng, t, y, digits, *FORMATS[name], extra=False))
        result = read_or_none(path, read_measurements, decimal=decimal)
        if np.ptp(y) > 0:
            assert result is not None and same(result.trajectories[0], t, y)


CELLS = ["", "NA", "bad", "1,5", "1.5", "1.234", "1,234", "<0.1", "5%", "12:30", "2020-03-01", '"']
CELLS += ["1e3", "-", "inf", "3 mg", "1 234", "\u00b5", "0x1", "20200301", "1:", "..", ",,", "1;2"]


def mutate(rng: np.random.Generator, lines: list[Line], delimiter: str) -> list[Line]:
    """Lines with some damage: of cells, of rows, of single characters."""
    lines = list(lines)
    for _ in range(rng.integers(1, 5)):
        at = int(rng.integers(len(lines)))
        text, _ = lines[at]
        cells = text.split(delimiter)
        match int(rng.integers(8)):
            case 0 | 1 | 2:
                cells[rng.integers(len(cells))] = str(rng.choice(CELLS))
                lines[at] = delimiter.join(cells), None
            case 3:
                lines[at] = delimiter.join([*cells, str(rng.choice(CELLS))]), None
            case 4:
                lines[at] = delimiter.join(cells[:-1]), None
            case 5:
                lines.insert(at, (str(rng.choice(CELLS)), None))
            case 6:
                lines = lines[:at] + lines[rng.integers(len(lines)) :] or [("t", None)]
            case _:
                place = int(rng.integers(len(text) + 1))
                odd = str(rng.choice(list("\t;, .\"'#-:%<e\u00a0\u2212")))
                lines[at] = text[:place] + odd + text[place:], None
    return lines


def misread(result, t, y, lines: list[Line], start: float) -> list[tuple[float, float]]:
    """Undamaged rows that were not read as they are, or more rows than the damage may give."""
    known = {(t[row], y[row]) for _, row in lines if row is not None and t[row] >= start}
    read = {pair for one in result.trajectories for pair in zip(one.t.tolist(), one.y.tolist())}
    invented = read - known
    if len(invented) > sum(row is None for _, row in lines):
        return sorted(invented)
    if "occurred more than once" in " ".join(result.notes):  # And values were averaged.
        known -= {(a, b) for a, b in known if a in {time for time, _ in invented}}
    return sorted(known - read)


@pytest.mark.parametrize("seed", range(10))
def test_mutations_are_read_right_or_refused(tmp_path, seed):
    """However a table is damaged, no other row of it is misread."""
    rng = np.random.default_rng(seed)
    path, read = tmp_path / "data.csv", 0
    options = [{}, {"replicates": True}, {"series": "1"}, {"series": "restart"}, {"start": "2"}]
    for i in range(100):
        t, y, *digits = draw(rng)
        delimiter, *marks = FORMATS[str(rng.choice(list(FORMATS)))]
        lines = mutate(rng, write_lines(rng, t, y, digits, delimiter, *marks, True), delimiter)
        path.write_text("\n".join(line for line, _ in lines), encoding="utf-8")
        chosen = options[i % len(options)]
        result = read_or_none(path, read=read_measurements, **chosen)
        if result is not None:
            start = 2.0 if "start" in chosen else -np.inf
            assert not misread(result, t, y, lines, start), (lines, result.notes)
            read += 1
    assert read > 25  # A fifth names labels that are none, and much damage is clear.


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_cell_is_named_or_refused(tmp_path, seed):
    """Where a cell is none of a number, the others are read as they are, and a note tells."""
    rng = np.random.default_rng(seed)
    path = tmp_path / "data.csv"
    for _ in range(50):
        t, y, *digits = draw(rng)
        lines = [f"{a};{b}" for a, b in zip(t, y)]
        row = int(rng.integers(len(y)))
        lines[row] = f"{t[row]};{rng.choice(['bad', '#REF!', '1.2.3', '5 6', '--1', '12k?'])}"
        path.write_text("\n".join(["t;y", *lines]))
        result = read_or_none(path)
        if result is not None:
            assert 0 < row < len(y) - 1 and "counted as missing" in " ".join(result[1])
            assert same(result[0], t[:row] + t[row + 1 :], y[:row] + y[row + 1 :])
