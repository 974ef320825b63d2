"""What worker.js asks of Python: to read a picture, and to write formulas. Answers are JSON."""

import json
import logging

import numpy
import onnxruntime
import searching
from PIL import Image

from i2l.errors import I2LError
from i2l.formats.convert import TEXT_FORMATS
from i2l.formulas.lexer import FormulaError
from i2l.formulas.normalize import normalize_formula
from i2l.formulas.pretty import readable_formula
from i2l.inference.decoding import NumpyArrays
from i2l.inference.reader import Reader
from i2l.web.answers import convert_formula, describe_failure, describe_reading

logging.disable()  # nobody reads a log in a browser: a failure is told to the person
# Two readings, as the page asks of a server: a sure reading comes with others too. There is no other model.
reader = Reader(n_best=2, handwriting=False)


class _KernelArrays(NumpyArrays):
    """The operations of a search, those that take most of them by kernels."""

    log_softmax, top_k = staticmethod(searching.log_softmax), staticmethod(searching.top_k)


reader.model.backend.arrays = _KernelArrays()


def attach(kernels=None, networks=None):
    """Take what only the browser has; nothing before Python's memory is saved."""
    numpy.attach(kernels)
    onnxruntime.attach(networks)


def read(data, width=0, height=0):
    """Read a picture: a file, or with a width and a height the pixels that the browser decoded."""
    data = data.to_bytes()
    try:
        source = Image.from_browser(data, width, height) if width else data
        return json.dumps({"reading": describe_reading(reader.read(source))})
    except Exception as error:  # whatever it is, the page goes on
        return json.dumps({"failure": describe_failure(error)})


def warm(formulas):
    """Follow formulas, one a line behind a tab, as a search and its reading would: what is learnt is saved."""
    guards = [reader._policy._guards[number] for number in (0, 1, 2)]
    for line in formulas.splitlines():
        formula = line.rpartition("\t")[2]
        tokens = normalize_formula(formula).formula.split()
        for guard in guards:
            state = guard.start()
            guard.allowed([state], steps_left=1000)
            for token in tokens:
                state = guard.advance(state, guard._ids[token])
                guard.allowed([state], steps_left=1000)
        readable_formula(" ".join(tokens))
        for name in (*TEXT_FORMATS, "docx"):
            convert_formula(formula, [name])


def latex(tokens):
    """Write tokens as a person would."""
    return _answer(lambda: readable_formula(" ".join(json.loads(tokens))))


def convert(formula, name):
    """Write LaTeX in a format."""
    return _answer(lambda: convert_formula(formula, [name])[0])


def _answer(make):
    try:
        return json.dumps({"answer": make()})
    except (FormulaError, I2LError) as error:
        return json.dumps({"failure": {"kind": "invalid-request", "detail": str(error)}})
