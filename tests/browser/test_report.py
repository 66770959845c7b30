"""report.html in Chromium: it draws, asks nobody for anything, and no name in it becomes markup."""

import pathlib


def address(runs: pathlib.Path, name: str = "one") -> str:
    return (runs / name / "report.html").as_uri()


def test_page_draws_everything_without_external_resources(browser, runs):
    browser.open(address(runs))
    browser.shot("report-light")
    assert browser.errors == [] and len(browser.requests) == 1
    titles = browser["[...document.querySelectorAll('h2')].map(e => e.textContent)"]
    for title in (
        "Where the step goes",
        "What would help",
        "Lines of your program",
        "Modules",
        "Flame graph of the device time",
        "Memory",
        "One step, one rank of each kind",
        "Ops by device time",
        "Roofline of the top kernels",
    ):
        assert title in titles
    drawn = browser[
        "(() => { const c = document.querySelector('canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, "
        "c.height).data;"
        " const seen = new Set(); for (let i = 0; i < d.length; i += 4) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + "
        "2]); return seen.size })()"
    ]
    assert drawn > 5  # colours
    print("drawn after", browser["performance.timing.loadEventEnd - performance.timing.navigationStart"], "ms")


def test_hostile_names_are_shown_as_text(browser, runs):
    browser.open(address(runs))
    assert browser["window.hacked"] is None and browser["document.scripts.length"] == 1
    assert "onerror=window.hacked=1" in browser["document.querySelector('h1').textContent"]
    assert browser["document.querySelectorAll('img').length"] == 0


def test_the_summary_shows_without_javascript(browser, runs):
    browser.open(address(runs), script=False)
    # innerText needs no script of the page.
    text = browser("DOM.getDocument") and browser("Runtime.evaluate", expression="document.body.innerText")[
        "result"
    ].get("value")
    browser("Emulation.setScriptExecutionDisabled", value=False)
    if text is None:
        text = (runs / "one" / "report.html").read_text().split("<noscript>")[1].split("</noscript>")[0]
    assert "Step" in text and "Memory" in text and "h100-sxm" in text
    assert "<img" not in text


def test_kernels_are_found_in_the_timeline(browser, runs):
    browser.open(address(runs))
    browser[
        "(() => { const i = document.querySelector('input[type=search]'); i.value = 'gemm'; i.dispatchEvent(new "
        "Event('input')); })()"
    ]
    found = browser["document.querySelector('.tools .hint').textContent"]
    assert found.split()[0].isdigit() and int(found.split()[0]) >= 8 and "found" in found
    browser["document.querySelector('input[type=search]').focus()"]
    browser["[...document.querySelectorAll('.tools button')].find(b => b.textContent === 'next').click()"]
    assert browser["document.querySelector('.tools .hint').textContent"].startswith("1 of ")
    browser["document.querySelector('td.name button.link').click()"]  # from an op to its place
    assert browser["document.querySelector('input[type=search]').value"] != ""
    browser["document.querySelector('canvas').focus()"]
    for key in ("+", "-", "ArrowLeft", "0"):
        browser.press(key)
    assert browser.errors == []


def test_modules_open_and_close(browser, runs):
    browser.open(address(runs))
    shown = "[...document.querySelectorAll('.tree tbody tr')].filter(r => !r.hidden).length"
    before = browser[shown]
    assert before == 12 and "up" in browser["document.querySelector('.tree').textContent"]
    browser["document.querySelector('.tree button.link').click()"]
    assert browser[shown] == before - 2
    browser["document.querySelector('.tree button.link').click()"]
    assert browser[shown] == before


def test_small_screen_and_dark_mode(browser, runs):
    browser.open(address(runs), width=390, height=800)
    browser.shot("report-phone")
    assert browser["document.documentElement.scrollWidth"] <= 390
    light = browser["getComputedStyle(document.body).backgroundColor"]
    browser.open(address(runs), dark=True)
    browser.shot("report-dark")
    assert browser["getComputedStyle(document.body).backgroundColor"] != light
    assert browser.errors == []


def test_the_comparison(browser, runs, tmp_path):
    import maya

    page = tmp_path / "compare.html"
    page.write_text(maya.compare(runs / "one", runs / "two").page())
    browser.open(page.as_uri())
    browser.shot("compare")
    assert browser.errors == [] and len(browser.requests) == 1 and browser["window.hacked"] is None
    assert browser["document.querySelectorAll('td.differs').length"] > 5
    assert {"Critical path by family", "Modules", "Ops, by what they do"} <= set(
        browser["[...document.querySelectorAll('h2')].map(e => e.textContent)"]
    )


def test_size_of_the_page(runs):
    assert (runs / "one" / "report.html").stat().st_size < 5_000_000


def test_the_page_says_what_it_was_made_from(browser, runs):
    browser.open(address(runs))
    rows = browser["[...document.querySelectorAll('#main > .scroll:last-of-type tr')].map(r => r.innerText)"]
    shown = "\n".join(rows)
    assert "torch" in shown and "Maya" in shown and "h100-sxm" in shown


def test_navigation_takes_one_line_on_a_phone(browser, runs):
    browser.open(address(runs), width=390, height=800)
    assert browser["document.querySelector('nav').offsetHeight"] < 60
    assert browser["document.querySelector('nav').scrollWidth > document.querySelector('nav').clientWidth"]
    assert browser["document.documentElement.scrollWidth"] <= 390


def test_modules_and_lines_have_memory(browser, runs):
    browser.open(address(runs))
    assert "MiB" in browser["document.querySelector('.tree').innerText"]
    heads = browser["[...document.querySelectorAll('th')].map(e => e.textContent)"]
    assert heads.count("memory") >= 2


def test_a_run_that_does_not_fit_shows_what_would(browser, runs, tmp_path):
    import sys

    import maya

    # A GPU of 1.45 GiB: weights and optimizer fit, the activations do not.
    run = maya.run([sys.executable, str(runs.parent / "train.py")], cluster="h100-sxm", out=tmp_path / "run",
                   quiet=True, set={"gpu.memory_bytes": 1556925645}, options=["--no-memory-limit"])
    browser.open(run.report.as_uri())
    browser.shot("report-does-not-fit")
    assert browser.errors == [] and "Does not fit" in browser["document.querySelector('.oom').textContent"]
    text = browser["document.body.innerText"]
    assert "WHAT WOULD FIT" in text and "a micro-batch of" in text and "GiB of" in text


def test_equal_rows_of_a_comparison_are_folded(browser, runs, tmp_path):
    import maya

    page = tmp_path / "compare.html"
    run = maya.open(runs / "one")
    page.write_text(maya.compare(run, run.predict(set={"scale.gemm": 2}, details=True)).page())
    browser.open(page.as_uri(), width=390, height=800)
    assert browser.errors == [] and browser["document.documentElement.scrollWidth"] <= 390
    assert browser["[...document.querySelectorAll('summary')].some(s => / without a difference/.test(s.textContent))"]
    shown = browser["[...document.querySelectorAll('td.name')].filter(e => !e.closest('details')).map(e => e.innerText)"
                    ]
    assert "gemm" in shown


def test_times_of_the_timeline_do_not_overlap_on_a_phone(browser, runs):
    browser.open(address(runs), width=390, height=844)
    browser[
        "window.labels = []; CanvasRenderingContext2D.prototype.fillText = function(text, x, y) {"
        " if (y === 10) labels.push([x, this.measureText(text).width]); }"
    ]
    browser["document.querySelector('canvas').focus()"]
    browser.press("0")  # draws again
    labels = browser["labels"]
    assert len(labels) >= 2
    for (left, before), (right, after) in zip(labels, labels[1:]):
        assert left + before / 2 < right - after / 2, labels


def test_every_colour_of_the_memory_chart_is_explained(browser, runs):
    browser.open(address(runs))
    drawn = browser["[...document.querySelectorAll('.picture polygon')].map(e => e.textContent)"]
    legend = browser["[...document.querySelectorAll('.picture + .legend span')].map(e => e.textContent)"]
    assert len(drawn) >= 3
    for kind in drawn:
        assert any(text.startswith(kind) for text in legend), (kind, legend)
