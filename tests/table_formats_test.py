"""Tables of known numbers in many formats: read as they are, or refused; never misread."""

import gzip

import numpy as np
import pytest

from nsode_jax.dynamics.trajectory import TrajectoryError
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
}


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


def write_table(rng, t, y, digits, delimiter, decimal, thousands, extra: bool) -> bytes:
    """The table as bytes, with a preamble, names, units, encoding and ends of line by chance."""

    def row(*cells: str) -> str:
        quoted = (f'"{c}"' if delimiter in c or rng.random() < quote else c for c in cells)
        return delimiter.join(quoted)

    quote = rng.choice([0.0, 0.0, 1.0])
    lines = []
    if extra and delimiter != " " and rng.random() < 0.5:
        pad = rng.choice(["", delimiter])
        lines += [f"Method: growth{pad}", f"Operator: N. N.{pad}", pad][: rng.integers(1, 4)]
    if extra or rng.random() < 0.7:
        lines.append(row("time", rng.choice(["cells", "A1"])))
        if extra and rng.random() < 0.3:
            lines.append(row("h", "mg"))
    for a, b in zip(t, y):
        cells = [write_number(v, d, decimal, thousands) for v, d in zip((a, b), digits)]
        lines.append(row(*cells))
        if extra and rng.random() < 0.05:
            lines.append(rng.choice(["", delimiter.strip(), "# a comment"]))
    text = rng.choice(["\n", "\r\n"]).join(lines) + rng.choice(["", "\n"])
    raw = text.encode(rng.choice(["utf-8", "utf-8-sig", "utf-16"]))
    return gzip.compress(raw) if rng.random() < 0.1 else raw


def read_or_none(path, **options):
    """What is read; None if it is refused, in one line."""
    try:
        return read_table(path) if not options else read_measurements(path, **options)
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
        result = read_or_none(path, decimal=decimal)
        if np.ptp(y) > 0:
            assert result is not None and same(result.trajectories[0], t, y)


CELLS = ["", "NA", "bad", "1,5", "1.5", "1.234", "1,234", "<0.1", "5%", "12:30", "2020-03-01", '"']
CELLS += ["1e3", "-", "inf", "3 mg", "1 234", "\u00b5", "0x1", "20200301", "1:", "..", ",,", "1;2"]


def mutate(rng: np.random.Generator, lines: list[str], delimiter: str) -> list[str]:
    """Lines with some damage: of cells, of rows, of single characters."""
    lines = list(lines)
    for _ in range(rng.integers(1, 5)):
        at = int(rng.integers(len(lines)))
        cells = lines[at].split(delimiter)
        match int(rng.integers(8)):
            case 0 | 1 | 2:
                cells[rng.integers(len(cells))] = str(rng.choice(CELLS))
                lines[at] = delimiter.join(cells)
            case 3:
                lines[at] = delimiter.join([*cells, str(rng.choice(CELLS))])
            case 4:
                lines[at] = delimiter.join(cells[:-1])
            case 5:
                lines.insert(at, str(rng.choice(CELLS)))
            case 6:
                lines = lines[:at] + lines[rng.integers(len(lines)) :] or ["t"]
            case _:
                place = int(rng.integers(len(lines[at]) + 1))
                odd = str(rng.choice(list("\t;, .\"'#-:%<e\u00a0\u2212")))
                lines[at] = lines[at][:place] + odd + lines[at][place:]
    return lines


@pytest.mark.parametrize("seed", range(10))
def test_mutations_end_in_a_series_or_a_line(tmp_path, seed):
    rng = np.random.default_rng(seed)
    path = tmp_path / "data.csv"
    options = [{}, {"replicates": True}, {"series": "1"}, {"series": "restart"}, {"start": "2"}]
    for i in range(100):
        t, y, *digits = draw(rng)
        delimiter, *marks = FORMATS[str(rng.choice(list(FORMATS)))]
        raw = write_table(rng, t, y, digits, delimiter, *marks, extra=True)
        raw = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
        text = raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
        path.write_text("\n".join(mutate(rng, text.splitlines(), delimiter)), encoding="utf-8")
        read_or_none(path, **options[i % len(options)])


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
