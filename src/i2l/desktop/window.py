"""A small window with a reading: the picture, the formula set anew, how sure it is, buttons to copy."""

import queue
import threading
import tkinter
from typing import TYPE_CHECKING, Final

from i2l.desktop.clipboard import copy_text
from i2l.desktop.resident import Answer, output_formats
from i2l.errors import I2LError

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH_PX: Final = 900  # of a picture; a larger one is shown smaller
POLL_MS: Final = 100
PAD_PX: Final = 8
DRAWN_DPI: Final = 144
COLUMNS: Final = 5  # of buttons


class ReadingWindow:
    """A window about one reading; Escape closes it."""

    def __init__(
        self,
        answer: Answer,
        picture: bytes,
        *,
        copy: "Callable[[str], None]" = copy_text,
        typeset: "Callable[[str], bytes | None] | None" = None,
    ) -> None:
        """Make the window.

        Args:
            answer: the reading.
            picture: what was read, as a PNG file.
            copy: puts a text on the clipboard.
            typeset: draws LaTeX as a PNG file; by Typst, where it is installed, if not given.

        Raises:
            I2LError: if there is no screen.
        """
        self.answer = answer
        self._copy = copy
        self._typeset = typeset or typeset_formula
        self._drawn: queue.Queue[bytes | None] = queue.Queue()
        try:
            self.root = tkinter.Tk(className="i2l")
        except tkinter.TclError as error:
            raise I2LError(f"The window cannot be shown: {error}") from error
        self.root.title("i2l")
        self.root.bind("<Escape>", lambda _event: self.root.destroy())
        self.status = tkinter.StringVar(self.root, describe(answer))
        self.buttons: dict[str, tkinter.Button] = {}
        self._pictures = [self._picture(picture)]
        self.typeset_label = tkinter.Label(self.root, background="white")
        self._lay_out()

    def _lay_out(self) -> None:
        tkinter.Label(self.root, image=self._pictures[0]).pack(padx=PAD_PX, pady=PAD_PX)
        self.typeset_label.pack(fill="x", padx=PAD_PX)
        source = tkinter.Text(self.root, height=4, width=80, wrap="word")
        source.insert("1.0", self.answer.latex)
        source.configure(state="disabled")
        source.pack(fill="both", expand=True, padx=PAD_PX, pady=PAD_PX)
        tkinter.Label(self.root, textvariable=self.status).pack(padx=PAD_PX)
        row = tkinter.Frame(self.root)
        row.pack(padx=PAD_PX, pady=PAD_PX)
        for place, name in enumerate(output_formats()):
            button = tkinter.Button(row, text=f"Copy {name}", command=lambda name=name: self.copy(name))  # type: ignore[misc]
            button.grid(row=place // COLUMNS, column=place % COLUMNS)
            self.buttons[name] = button

    def copy(self, output: str) -> None:
        """Copy the reading in a format, and say so."""
        try:
            self._copy(self.answer.text(output))
            self.status.set(f"{output} copied")
        except I2LError as error:
            self.status.set(str(error))

    def show(self) -> None:
        """Show the window until it is closed. The formula appears in it when it is drawn."""
        threading.Thread(
            target=lambda: self._drawn.put(self._typeset(self.answer.latex)), daemon=True
        ).start()
        self.root.after(POLL_MS, self._look)
        self.root.mainloop()
        # What Tk keeps is let go here: if the garbage collector did it in another thread, Tk would raise.
        self._pictures.clear()
        del self.status

    def _look(self) -> None:
        try:
            drawn = self._drawn.get_nowait()
        except queue.Empty:
            self.root.after(POLL_MS, self._look)
            return
        if drawn is not None:
            self._pictures.append(self._picture(drawn))
            self.typeset_label.configure(image=self._pictures[-1])

    def _picture(self, content: bytes) -> tkinter.PhotoImage:
        picture = tkinter.PhotoImage(master=self.root, data=content, format="png")
        return picture.subsample(-(-picture.width() // WIDTH_PX)) if picture.width() > WIDTH_PX else picture


def describe(answer: Answer) -> str:
    """Say in one line how sure a reading is."""
    return f"confidence {answer.confidence:.0%}" + (f": {answer.doubt}" if answer.doubt else "")


def typeset_formula(latex: str) -> bytes | None:
    """Draw a formula as a PNG file; None where Typst is not installed, or cannot say the formula."""
    from i2l.formats.convert import formula_file

    try:
        return formula_file(latex, "png", dpi=DRAWN_DPI)
    except I2LError:
        return None
