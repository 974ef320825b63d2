"""What the tests of the page share: opening it, giving it pictures, looking at what it shows."""

import base64
import contextlib

import numpy as np

from tests.inference.conftest import draw_formula

FORMULA = "x ^ { 2 } = y"
LATEX = "x^{2} = y"
DESKTOP = {"viewport": {"width": 1366, "height": 768}}
TELEPHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


class Visit:
    """A page that was opened, and what the browser complained about."""

    def __init__(self, browser, address, **options):
        self.context = browser.new_context(**{**DESKTOP, "locale": "en", **options})
        self.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
        self.page = self.context.new_page()
        self.page.set_default_timeout(15_000)
        self.errors = []
        self.foreign = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._listen)
        self.page.on("request", lambda request: self._look(request.url, address))
        self.page.goto(address)
        self.page.wait_for_selector("#examples .card", state="attached")
        self.page.wait_for_function("() => document.body.dataset.ready")

    def _listen(self, message):
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.errors.append(message.text)

    def _look(self, url, address):
        if not url.startswith((address, "blob:", "data:")):
            self.foreign.append(url)

    def close(self):
        self.context.close()
        assert self.errors == []
        assert self.foreign == []


@contextlib.contextmanager
def visiting(browser, server):
    """Give a function that opens the page; at the end no browser may have complained."""
    opened = []

    def visit_page(**options):
        opened.append(Visit(browser, server.address, **options))
        return opened[-1].page

    yield visit_page
    for one in opened:
        one.close()


def choose(page, *paths):
    """Choose files as a person does; from a reading by way of the start."""
    if page.locator("#new").is_visible():
        page.locator("#new").click()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose pictures").click()
    chooser.value.set_files(list(paths))


def latex_of(page):
    return "\n".join(page.locator("#latex .cm-line").all_text_contents())


def expect_latex(page, latex=LATEX):
    page.wait_for_function(
        """(latex) => [...document.querySelectorAll("#latex .cm-line")].map((line) => line.textContent)
          .join("\\n") === latex && !document.getElementById("verdict").hidden""",
        arg=latex,
    )


def write(page, latex):
    """Replace the LaTeX by typing."""
    page.locator("#latex .cm-content").focus()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(latex)


def transfer(page, kind, data, name="formula.png", mime="image/png", target="document.body", count=1):
    """Paste or drop files as the browser would."""
    page.evaluate(
        f"""([kind, data, name, type, count]) => {{
          const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
          const transfer = new DataTransfer();
          for (let index = 0; index < count; index++) {{
            transfer.items.add(new File([bytes], count > 1 ? `${{index}}-${{name}}` : name, {{ type }}));
          }}
          const options = {{ bubbles: true, cancelable: true }};
          const event = kind === "paste"
            ? new ClipboardEvent(kind, {{ ...options, clipboardData: transfer }})
            : new DragEvent(kind, {{ ...options, dataTransfer: transfer }});
          {target}.dispatchEvent(event);
        }}""",
        [kind, base64.b64encode(data).decode(), name, mime, count],
    )


def fits(page):
    """Tell whether the page is no wider than the screen."""
    return (
        page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        and page.evaluate("innerWidth") == page.viewport_size["width"]
    )


def token(text, probability=0.97, box=None, **others):
    """One token of an answer; `others` are what else it might be, with their probabilities."""
    alternatives = [{"text": name, "probability": chance} for name, chance in others.items()]
    return {"text": text, "probability": probability, "box": box, "alternatives": alternatives}


def answer_with(*tokens, latex=None, ink=(10, 10, 50, 30), size=(60, 40), alternatives=(), **fields):
    """An answer of `/api/read`."""
    latex = "".join(one["text"] for one in tokens) if latex is None else latex
    return {
        "request_id": latex,
        "latex": latex,
        "confidence": 0.9,
        "tokens": list(tokens),
        "alternatives": [{"latex": text, "confidence": share} for text, share in alternatives],
        "finished": True,
        "unread": 0.0,
        "seconds": 0.1,
        "ink": list(ink),
        "image_width": size[0],
        "image_height": size[1],
        **fields,
    }


def answer(page, content, status=200):
    """Let the server answer every reading with this."""
    page.unroute("**/api/read?*")
    page.route("**/api/read?*", lambda route: route.fulfill(json=content, status=status))


def known_tokens(formula=FORMULA):
    """Tokens of a drawn formula with the boxes of its letters: the small model looks at all of them."""
    pixels = draw_formula(formula) < 128
    columns = np.flatnonzero(np.diff(pixels.any(axis=0), prepend=0, append=0)).reshape(-1, 2)
    boxes = []
    for left, right in columns.tolist():
        rows = np.flatnonzero(pixels[:, left:right].any(axis=1))
        boxes.append([left, int(rows[0]), right, int(rows[-1]) + 1])
    drawn = iter(boxes)
    return [token(text, 0.99, None if text in "^{}" else next(drawn)) for text in formula.split(" ")]
