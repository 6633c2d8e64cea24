"""The page in a browser; `make test-app` installs what that needs."""

import asyncio
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
PATIENCE = 300.0  # Seconds; only a failed test waits so long.
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
DRIVER = shutil.which("chromedriver")
# Screenshots go there, to be looked at.
SHOTS = os.environ.get("NSODE_SHOTS")

PASSING = ("StaleElementReferenceException", "ElementClickInterceptedException",
           "ElementNotInteractableException")  # fmt: skip
SWITCHES = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--window-size=1360,1000")  # fmt: skip


@pytest.fixture(scope="module")
def address():
    """Where the page is served, by a process of its own."""
    pytest.importorskip("nicegui", reason="the extra `app` is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "nsode_jax.app", "--no-browser", "--port", str(port)]
    # Pytest's own simulated devices would slow it down.
    hidden = ("XLA_FLAGS", "PYTEST_CURRENT_TEST", "NICEGUI_SCREEN_TEST_PORT")
    environment = {k: v for k, v in os.environ.items() if k not in hidden}
    process = subprocess.Popen(command, cwd=ROOT, env=environment)
    address = f"http://127.0.0.1:{port}"
    try:
        until(lambda: process.poll() is None and served(address))
        yield address
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def browser(address, tmp_path_factory):
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("there is no chromium, or no chromedriver")
    from selenium.webdriver.chrome.service import Service

    options = selenium.ChromeOptions()
    options.binary_location = CHROMIUM
    for switch in SWITCHES:
        options.add_argument(switch)
    downloads = tmp_path_factory.mktemp("downloads")
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = selenium.Chrome(options=options, service=Service(DRIVER))
    try:
        yield Browser(driver, address, downloads)
    finally:
        driver.quit()


def served(address):
    try:
        return urllib.request.urlopen(address, timeout=5).status == 200
    except OSError:
        return False


def until(condition, missed=lambda: ""):
    """What the condition gives, once it is something; `missed` tells what was there instead."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            if found := condition():
                return found
        except Exception as error:
            # The page replaces and moves its elements at any moment.
            if type(error).__name__ not in PASSING:
                raise
        assert time.monotonic() < end, missed()
        time.sleep(0.05)


class Browser:
    """What a visitor can do and see."""

    def __init__(self, driver, address, downloads):
        self.driver, self.address, self.downloads = driver, address, downloads

    def open(self):
        self.driver.get(self.address)
        self.find("input[type=file]")

    def all(self, css):
        return self.driver.find_elements("css selector", css)

    def find(self, css):
        return until(lambda: self.all(css))[0]

    def text(self, css):
        """The text of an element; it may be replaced at any moment."""
        found = self.driver.execute_script(
            "return document.querySelector(arguments[0])?.textContent || ''", css
        )
        return " ".join(found.split())

    def see(self, css, *words):
        """Waits until an element's text holds the words: the page fills in any order."""
        until(lambda: all(word in self.text(css) for word in words), lambda: self.text(css))

    def press(self, words):
        """A button, a tab or an entry of a list."""

        def named():
            for element in self.all("button, .q-tab, .q-menu .q-item"):
                if words == element.text and element.is_displayed():
                    return element
            return None

        def pressed():
            button = named()
            if button is None or not button.is_enabled():
                return False
            self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
            button.click()
            return True

        until(pressed)

    def tick(self, words):
        """One of several choices, or a switch."""

        def ticked():
            for element in self.all(".q-radio, .q-checkbox"):
                if words in element.text and element.is_displayed():
                    self.driver.execute_script(
                        "arguments[0].scrollIntoView({block: 'center'})", element
                    )
                    element.click()
                    return True
            return False

        until(ticked)

    def unfold(self):
        """Opens what is folded away."""
        until(lambda: self.all(".more .q-item"))[0].click()

    def write(self, field, words):
        """Writes on in a line."""

        def written():
            line = self.all(f".{field} input")[0]
            self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", line)
            line.send_keys(words)
            return True

        until(written)

    def upload(self, path):
        self.find("input[type=file]").send_keys(str(path))

    def choose(self, rank):
        """Clicks on a candidate."""
        row = f".candidates tbody tr:nth-child({rank})"
        until(lambda: self.all(row))[0].click()

    def slide(self, name, share):
        """Clicks on a slider at a share of its length."""
        from selenium.webdriver import ActionChains

        bar = self.find(f".slider-{name}")
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", bar)
        across = round((share - 0.5) * bar.size["width"])
        ActionChains(self.driver).move_to_element_with_offset(bar, across, 0).click().perform()

    def pictures(self):
        """Source and description of each picture of the law."""
        return self.driver.execute_script(
            "return [...document.querySelectorAll('.pictures img')].map(x => [x.src, x.alt])"
        )

    def caption(self, words):
        """Waits until the first picture is this one."""
        until(lambda: [alt for _, alt in self.pictures()][:1] == [words], self.pictures)

    def downloaded(self, name):
        return until(lambda: [p for p in self.downloads.iterdir() if p.name == name])[0]

    def hosts(self):
        """From where anything was asked for."""
        log = "".join(entry["message"] for entry in self.driver.get_log("performance"))
        return set(re.findall(r'"url":"(?:https?|wss?)://([^/"]+)', log))

    def shot(self, name):
        if SHOTS is None:
            return
        height = self.driver.execute_script("return document.documentElement.scrollHeight")
        width = self.driver.execute_script("return window.innerWidth")
        self.driver.set_window_size(width, max(1000, height + 140))
        time.sleep(1.0)
        self.driver.save_screenshot(str(Path(SHOTS) / f"{name}.png"))
        self.driver.set_window_size(1360, 1000)


def test_from_a_file_to_a_moved_constant(browser):
    browser.open()
    browser.upload(ROOT / "examples" / "yeast_growth.csv")
    browser.see(".read", "19 points of yeast_amount over time_h from 0 to 18")
    browser.press("fast")
    browser.press("Find the law")
    browser.see(".details", "carrying capacity")
    browser.see(".details", "K = 663.0 ± 1.7")
    browser.see(".candidates", "0.547*y - 0.000825*y**2")

    # Its constants move, and everything that is shown of the law with them.
    until(lambda: len(browser.pictures()) == 2)
    before = [source for source, _ in browser.pictures()]
    browser.slide("c1", 0.8)
    until(lambda: "R² = 0.999" not in browser.text(".law"))
    browser.caption("The data and the solution of candidate 1, moved")
    until(lambda: all(source not in before for source, _ in browser.pictures()))
    browser.shot("wide")
    browser.press("As fitted")
    browser.see(".law", "R² = 0.99985")

    # Another law.
    browser.choose(2)
    browser.caption("The data and the solution of candidate 2")
    browser.press("Report")
    browser.press("Report, pictures and numbers (ZIP)")
    with zipfile.ZipFile(browser.downloaded("yeast_growth_law.zip")) as files:
        assert "report.html" in files.namelist()


def test_bad_files_are_answered_in_place(browser, tmp_path):
    bad = tmp_path / "bad.csv"
    bad.write_text("hello\nworld\n")
    browser.open()
    browser.upload(bad)
    browser.see(".problem", "'bad.csv' has no two columns of numbers")
    browser.shot("bad")
    # And the next one is read.
    browser.upload(ROOT / "examples" / "yeast_growth.csv")
    browser.see(".read", "19 points")
    until(lambda: not browser.all(".problem"))


def test_coupled_quantities_from_pasted_cells(browser):
    browser.open()
    browser.press("Paste")
    text = (ROOT / "examples" / "lynx_hare.csv").read_text().replace(",", "\t")
    area = browser.find("textarea")
    browser.driver.execute_script(
        "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))",
        area, text,
    )  # fmt: skip
    browser.press("Read")
    browser.see(".read", "21 points of hare over year")
    browser.see(".values", "numbers too: lynx; add what acts on each other")
    browser.all(".q-select")[1].click()
    browser.press("lynx")
    browser.see(".read", "21 points of hare, lynx over year")
    until(lambda: "numbers too" not in browser.text(".values"))
    browser.shot("two")
    browser.find("body").send_keys("\ue00c")  # Escape closes the list.
    browser.unfold()
    browser.write("tried", "a*hare - b*hare*lynx; c*hare*lynx - d*")
    browser.see(".problem", "“a law to try”: cannot read the formula 'c*hare*lynx - d*'")
    browser.write("tried", "lynx")
    until(lambda: not browser.all(".problem"))
    browser.press("fast")
    browser.press("Find the law")
    browser.see(".details", "eigenvalues")
    until(lambda: len(browser.pictures()) == 2)
    browser.see(".candidates", "dhare/dt")
    before = browser.text(".law")
    browser.slide("c0", 0.7)
    until(lambda: browser.text(".law") != before)
    browser.driver.set_window_size(420, 900)
    browser.shot("narrow")


def test_many_series_have_constants_of_their_own(browser, tmp_path):
    t = np.linspace(0.0, 12.0, 20)
    rows = [f"{name},{time},{1.5 / (1 + 29 * np.exp(-rate * time)):.5f}"
            for name, rate in (("wild type", 0.6), ("mutant", 0.9), ("<i>", 1.2))
            for time in t]  # fmt: skip
    plate = tmp_path / "plate.csv"
    plate.write_text("\n".join(["strain,hours,OD", *rows]))
    browser.open()
    browser.upload(plate)
    browser.see(".read", "60 points of OD over hours from 0 to 12, 3 series")
    browser.tick("constants of its own in each series")
    browser.press("fast")
    browser.press("Find the law")
    until(lambda: len(browser.pictures()) == 2)
    browser.caption("Every series and its solution")
    browser.see(".details", "carrying capacity", "wild type", "<i>")
    until(lambda: not browser.all(".slider-c0"))
    browser.press("Python")
    browser.see(".python", "'mutant': (")
    browser.press("Report")
    browser.see(".command", "nsode-discover plate.csv --time=hours --value=OD")
    browser.press("Report, pictures and numbers (ZIP)")
    with zipfile.ZipFile(browser.downloaded("plate_law.zip")) as files:
        assert "constants.csv" in files.namelist()
    browser.press("Constants (CSV)")
    table = browser.downloaded("plate_constants.csv").read_text().splitlines()
    assert table[0].startswith("series,") and [row[:4] for row in table[1:]] == [
        "wild", "muta", "<i>,",
    ]  # fmt: skip
    browser.shot("plate")


def test_many_series_have_laws_of_their_own(browser, tmp_path):
    t = np.linspace(0.0, 12.0, 20)
    series = {"A1": 8 / (1 + 15 * np.exp(-0.9 * t)), "A2": 3 * np.exp(-0.4 * t), "A3": t[:5]}
    rows = [f"{name},{time},{value:.5f}" for name, y in series.items() for time, value in zip(t, y)]
    wells = tmp_path / "wells.csv"
    wells.write_text("\n".join(["well,hours,OD", *rows]))
    browser.open()
    browser.upload(ROOT / "examples" / "yeast_growth.csv")
    browser.see(".read", "19 points")
    assert not any(radio.is_displayed() for radio in browser.all(".q-radio"))
    browser.upload(wells)
    browser.see(".read", "45 points of OD over hours from 0 to 12, 3 series")
    browser.tick("a law of its own for each series")
    browser.press("fast")
    browser.press("Find the law")
    browser.see(
        ".each", "Laws to be believed for 2 of 3 series", "logistic growth", "Only 5 usable points"
    )
    browser.caption("The data and the solution of candidate 1")
    browser.see(".details", "carrying capacity")
    browser.shot("each")
    until(lambda: browser.all(".each tbody tr"))[1].click()
    browser.see(".details", "exponential decay")
    browser.press("Report")
    browser.see(".command", "nsode-discover wells.csv", "--each --out=wells_laws")
    browser.press("Report (HTML)")
    assert b"<!DOCTYPE html>" in browser.downloaded("wells_A2_law.html").read_bytes()
    browser.press("Table (CSV)")
    table = browser.downloaded("wells_laws.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in table] == ["series", "A1", "A2", "A3"]


def test_a_form_that_is_known_is_fitted_in_a_window(browser):
    browser.open()
    browser.upload(ROOT / "examples" / "yeast_growth.csv")
    browser.see(".read", "19 points")
    browser.unfold()
    browser.write("form", "r*y*(1 - y/K")
    browser.see(".problem", "“known form”: cannot read the formula 'r*y*(1 - y/K'")
    browser.write("form", ")")
    until(lambda: not browser.all(".problem"))
    browser.write("end", "15")
    browser.write("bounds", "0 < r < 0.5")
    browser.press("Fit the form")  # What was just written counts.
    browser.see(".details", "r is pressed against its bound")
    browser.see(".more", "to 15, form r*y*(1 - y/K)")
    until(lambda: len(browser.pictures()) == 1)
    browser.caption("The data and the solution")
    browser.press("Report")
    browser.see(".command", "nsode-discover yeast_growth.csv", "--to=15", "--bounds=0 < r < 0.5")
    browser.shot("form")


def test_marks_that_can_be_read_in_two_ways(browser, tmp_path):
    marks = tmp_path / "marks.csv"
    marks.write_text("t;y\n" + "".join(f"{t};1,{t:03d}\n" for t in range(100, 120)))
    browser.open()
    browser.upload(marks)
    # The message opens the fold with the controls that it names.
    browser.see(".problem", "can be read in two ways", "“decimal mark” ','", "“mark of thousands”")
    until(lambda: browser.all(".decimal")[0].is_displayed())
    browser.all(".decimal")[0].click()
    browser.press("comma ,")
    browser.see(".read", "20 points of y over t from 100 to 119")
    browser.shot("marks")


def test_dates_that_can_be_read_in_two_ways(browser, tmp_path):
    days = [f"{number:02}/{number + 1:02}/2020,{number**2}" for number in range(1, 12)]
    dates = tmp_path / "dates.csv"
    dates.write_text("\n".join(["date,y", *days]))
    browser.open()
    browser.upload(dates)
    browser.see(".problem", "can be read in two ways", "“order of dates” day-first")
    until(lambda: browser.all(".dates")[0].is_displayed())
    browser.all(".dates")[0].click()
    browser.press("day-first")
    browser.see(".read", "11 points of y over date")


def test_positions_and_what_does_not_go_together(browser, tmp_path):
    t = np.linspace(0.0, 12.0, 80)
    y = np.exp(-0.1 * t) * np.cos(2 * t)
    rows = [f"{a:.4f},{b:.6f},0.01" for a, b in zip(t, y, strict=True)]
    spring = tmp_path / "spring.csv"
    spring.write_text("\n".join(["time,x,x_sd", *rows]))
    browser.open()
    browser.upload(spring)
    # The errors are seen, and do not go with accelerations.
    browser.see(".more", "errors x_sd")
    browser.tick("second order")
    browser.see(
        ".problem",
        "“errors of measurement” is for one quantity with dy/dt = f(y) only; leave it out",
    )
    browser.find(".errors .q-chip__icon--remove").click()
    browser.see(".read", "80 points of x over time")
    browser.press("fast")
    browser.press("Find the law")
    until(lambda: len(browser.pictures()) == 2)
    browser.see(".law", "v is dx/dt")
    browser.see(".details", "stable focus")
    before = browser.text(".law")
    browser.slide("c1", 0.7)
    until(lambda: browser.text(".law") != before)
    browser.shot("spring")


def test_wells_of_a_plate_and_an_example(browser, tmp_path):
    t = np.linspace(0.0, 5.0, 9)
    names = [f"{row}{column}" for row in "ABCD" for column in range(1, 4)]
    table = np.column_stack([t, *(np.exp(-0.1 * k * t) for k in range(1, 13))])
    wells = tmp_path / "wells.csv"
    header = ",".join(["time", *names])
    np.savetxt(wells, table, delimiter=",", header=header, comments="", fmt="%.5f")
    browser.open()
    browser.upload(wells)
    browser.see(".read", ", 12 series")
    browser.see(".values", "12 columns")
    browser.shot("wells")
    browser.press("Hares and lynxes")
    browser.see(".read", "21 points of hare, lynx over year")


def test_points_can_be_drawn_and_a_search_stopped(browser):
    from selenium.webdriver import ActionChains

    browser.open()
    browser.press("Draw")
    canvas = until(lambda: [c for c in browser.all(".canvas") if c.is_displayed()])[0]
    time.sleep(0.5)  # Until the panel has slid in.
    stroke = ActionChains(browser.driver, duration=30)
    stroke.move_to_element_with_offset(canvas, -120, 60).click_and_hold()
    for step in range(1, 21):
        stroke.move_to_element_with_offset(canvas, -120 + 12 * step, 60 - step**2 // 4)
    stroke.release().perform()
    until(lambda: len(browser.all(".canvas circle")) >= 8)
    browser.press("Use")
    browser.see(".read", " points of y over t from")
    browser.shot("drawn")
    browser.press("thorough")
    browser.press("Find the law")
    until(lambda: browser.text(".stage"))
    browser.press("Stop")
    browser.press("Clear")


def test_nothing_is_fetched_from_elsewhere(browser):
    """After the others: all that was asked for by now."""
    browser.open()
    assert browser.hosts() == {browser.address.removeprefix("http://")}
    errors = [e for e in browser.driver.get_log("browser") if e["level"] == "SEVERE"]
    assert not errors


def test_other_names_and_large_files_are_refused(address):
    port = address.rpartition(":")[2]
    request = urllib.request.Request(address, headers={"Host": f"evil.example:{port}"})
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(request)
    request = urllib.request.Request(f"{address}/x", data=b"x" * (11 * 2**20))
    with pytest.raises((urllib.error.HTTPError, ConnectionError, urllib.error.URLError)):
        urllib.request.urlopen(request)


def test_a_search_asked_for_while_a_file_is_read_is_of_that_file(monkeypatch):
    """Without a browser: what is clicked before the new table is there waits for it."""
    testing = pytest.importorskip("nicegui.testing", reason="the extra `app` is not installed")
    from nicegui import ui

    from nsode_jax.app import page
    from nsode_jax.app.jobs import Job
    from nsode_jax.tables.files import Contents

    class Queue:
        def __init__(self):
            self.tasks = []

        def submit(self, task):
            self.tasks.append(task)
            return Job()

        def before(self, job):
            return 0

        def stop(self, job):
            pass

    def table(name):
        rows = "".join(f"{i},{2 * i * i + 1}\n" for i in range(12))
        return Contents(f"{name}.csv", f"time,{name}\n{rows}".encode())

    queue, visits, read = Queue(), [], page._read_and_draw

    def slowly(*arguments):
        time.sleep(0.5)
        return read(*arguments)

    async def visit():
        async with testing.user_simulation() as user:
            ui.page("/")(lambda: visits.append(page.Visit(queue)))
            await user.open("/")
            (visit,) = visits
            with user:
                await visit._take(table("old"))
                assert visit._controls._run.enabled
                monkeypatch.setattr(page, "_read_and_draw", slowly)
                taking = asyncio.create_task(visit._take(table("new")))
                await asyncio.sleep(0.2)
                assert visit._read is None and not visit._controls._run.enabled
                await visit._start()
                await taking

    asyncio.run(visit())
    assert [task.read.names for task in queue.tasks] == [("time", "new")]
