"""Documents: what each block becomes in Markdown and in HTML, and that no text gets out of it."""

import base64
import html.parser

import pytest

from nsode_jax.reporting.documents import (
    Bullets,
    Code,
    Formula,
    Heading,
    Paragraph,
    Picture,
    Table,
    to_html,
    to_markdown,
)

TABLE = Table(("rank", "law"), (("1", "y | 2"), ("2", "a<b")))
LAWS = TABLE._replace(code=True)
FORMULA = Formula("y^2", b"<svg/>", "y squared")
PICTURE = Picture("fit.png", b"png", "a curve", "Data & law.")


@pytest.mark.parametrize(
    ("block", "markdown", "page"),
    [
        (Heading("a_b"), "## a\\_b", "<h2>a_b</h2>"),
        (Paragraph("1 < 2"), "1 \\< 2", "<p>1 &lt; 2</p>"),
        (Bullets(("a", "b")), "- a\n- b", "<ul><li>a</li><li>b</li></ul>"),
        (Code("y*y < 1"), "```\ny*y < 1\n```", "<pre><code>y*y &lt; 1</code></pre>"),
        (FORMULA, "$$\ny^2\n$$", f'{base64.b64encode(b"<svg/>").decode()}" alt="y squared">'),
        (PICTURE, "![a curve](fit.png)\n\n*Data \\& law.*", "Data &amp; law.</figcaption>"),
        (TABLE, "| 1 | y \\| 2 |\n| 2 | a\\<b |", "<tr><td>2</td><td>a&lt;b</td></tr>"),
        (
            LAWS,
            "| ---: | :--- |\n",
            '<td>2</td><td style="text-align: left"><code>a&lt;b</code></td>',
        ),
    ],
)
def test_each_block_in_both_forms(block, markdown, page):
    written = to_markdown("Title", [block])
    assert written.startswith("# Title\n\n") and markdown in written
    assert page in to_html("Title", [block])


class Tags(html.parser.HTMLParser):
    """All start tags of a page, with their attributes."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


HOSTILE = "<script>alert(1)</script> \"'&amp; | `x` $\\frac$ [a](javascript:b)"


def test_hostile_text_stays_text():
    blocks = [
        Heading(HOSTILE),
        Paragraph(HOSTILE),
        Bullets((HOSTILE,)),
        Table((HOSTILE, "law"), ((HOSTILE, "y"),), code=True),
        Picture("a.png", b"png", HOSTILE, HOSTILE),
        Formula("y", b"<svg/>", HOSTILE),
    ]
    tags = Tags(to_html(HOSTILE, blocks)).found
    assert not {"script", "a"} & {tag for tag, _ in tags}
    assert [a["alt"] for tag, a in tags if tag == "img"] == [HOSTILE, HOSTILE]
    policy = next(a["content"] for _, a in tags if "http-equiv" in a)
    assert policy.startswith("default-src 'none'")
    text = to_markdown(HOSTILE, blocks)
    assert "<script" not in text.replace("\\<", "") and "[a]" not in text.replace("\\[", "")
