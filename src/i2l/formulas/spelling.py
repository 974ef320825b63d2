r"""One spelling for what looks the same: the old font switches instead of the commands with an argument, and
no space around a formula.

`\mathcal { L }` and `{ \cal L }` are the same picture, and which of them a label has says when its author
learnt LaTeX. A model that learns from both can only guess; im2latex-100k, whose papers are older than most,
has the switch in eight cases of nine, so that is the spelling which labels to be compared with it are given.

One name for what looks the same: the many names of a sign become one, all of them known to TeX.

`\le` and `\leq` are the same sign at the same distance from its neighbours, so no reader can tell them apart;
nor should a label, a reading or a list of alternatives. KaTeX, MathJax and Wikipedia know further names
(`\infin`, `\rarr`), which plain LaTeX with amssymb does not draw. The commonest name of papers is kept.

What a formula looks like, as far as its text tells: which spellings are one picture.

Space and the braces of a group draw nothing, `\left(` draws what `(` draws around small things, and a sign
has one name (`i2l.formulas.spelling`).
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from i2l.formulas.commands import SPACES


def _pairs(text: str) -> dict[str, str]:
    words = text.split()
    return dict(zip(words[::2], words[1::2], strict=True))


# Two names of one sign in LaTeX, amsmath, amssymb and mathtools; a test asks TeX whether that is so.
_SAME_IN_TEX: Final = _pairs(
    r"""
    \le \leq             \ge \geq              \ne \neq            \rightarrow \to
    \gets \leftarrow     \owns \ni             \land \wedge        \lor \vee
    \lnot \neg           \square \Box          \lozenge \Diamond   \leadsto \rightsquigarrow
    \doublecap \Cap      \doublecup \Cup       \doteqdot \Doteq    \gggtr \ggg
    \llless \lll         \restriction \upharpoonright              \Vert \|
    \lbrace \{           \rbrace \}            \vert |
    \varbigtriangleup \bigtriangleup           \varbigtriangledown \bigtriangledown
    \> \:                \thinspace \,         \medspace \:        \thickspace \;
    \negthinspace \!     \enskip \enspace      \ordinarycolon :    \lparen (
    \rparen )
    """
)
# Names that KaTeX, MathJax or Wikipedia give to a sign of LaTeX; and the daggers, which only differ in their
# distance where they stand between two letters instead of above one.
_ELSEWHERE: Final = _pairs(
    r"""
    \infin \infty        \alef \aleph          \alefsym \aleph     \weierp \wp
    \image \Im           \real \Re             \empty \emptyset    \exist \exists
    \isin \in            \and \wedge           \or \vee            \ang \angle
    \bull \bullet        \sdot \cdot           \plusmn \pm         \thetasym \vartheta
    \sub \subset         \sube \subseteq       \supe \supseteq     \sect \S
    \clubs \clubsuit     \hearts \heartsuit    \spades \spadesuit  \diamonds \diamondsuit
    \lang \langle        \rang \rangle         \lt <               \gt >
    \larr \leftarrow     \lArr \Leftarrow      \Larr \Leftarrow
    \rarr \to            \rArr \Rightarrow     \Rarr \Rightarrow
    \harr \leftrightarrow      \hArr \Leftrightarrow     \Harr \Leftrightarrow
    \lrarr \leftrightarrow     \lrArr \Leftrightarrow    \Lrarr \Leftrightarrow
    \uarr \uparrow       \uArr \Uparrow        \Uarr \Uparrow
    \darr \downarrow     \dArr \Downarrow      \Darr \Downarrow
    \mathbbm \mathbb     \mathds \mathbb       \mathbold \boldsymbol
    \omicron o           \dag \dagger          \ddag \ddagger
    """
)
ALIASES: Final = _SAME_IN_TEX | _ELSEWHERE

# After \left, \right and the like a vertical bar is the same whether it opens or closes.
DELIMITER_ALIASES: Final = {
    name: ALIASES[name] for name in (r"\lbrace", r"\rbrace", r"\vert", r"\Vert")
} | _pairs(
    r"\lbrack [ \rbrack ] \lvert | \rvert | \lVert \| \rVert \| \lang \langle \rang \rangle < \langle"
    r" > \rangle \lparen ( \rparen ) \lt \langle \gt \rangle"
)

# Names that stand for several tokens.
SPELLED_OUT: Final[dict[str, str]] = (
    {rf"\{name}": rf"\mathbb{{{letter}}}" for name, letter in _pairs("R R N N Z Z reals R Reals R").items()}
    | {r"\natnums": r"\mathbb{N}", r"\cnums": r"\mathbb{C}", r"\Complex": r"\mathbb{C}"}
    | {
        rf"\{name}": rf"\mathrm{{{letter}}}"
        for name, letter in _pairs(
            "Alpha A Beta B Epsilon E Zeta Z Eta H Iota I Kappa K Mu M Nu N Omicron O Rho P Tau T Chi X"
        ).items()
    }
    | {
        rf"\{name}": rf"\operatorname{{{name}}}"
        for name in ("tg", "ctg", "cotg", "arctg", "arcctg", "cosec", "sh", "ch", "cth", "sgn")
    }
    | {r"\argmin": r"\operatorname*{arg\,min}", r"\argmax": r"\operatorname*{arg\,max}"}
    | {r"\plim": r"\operatorname*{plim}", r"\mathellipsis": r"\ldots"}
)


def one_name(token: str) -> str:
    r"""Give the name that a raw token is written by; `\left\lbrace` and the like are one token."""
    for opening in (r"\left", r"\right"):
        if token.startswith(opening) and (delimiter := DELIMITER_ALIASES.get(token[len(opening) :])):
            return opening + delimiter
    return ALIASES.get(token, token)


SWITCHES = {r"\mathcal": r"\cal", r"\mathbf": r"\bf"}


def respell(formula: str) -> str:
    r"""Write `{ \cal L }` for `\mathcal { L }` and `{ \bf x }` for `\mathbf { x }`; as many tokens as before.

    Signs get the one name that `i2l.formulas.spelling` has for them, also in lists from before that table.

    Args:
        formula: canonical tokens joined by single spaces.
    """
    tokens = [one_name(token) for token in formula.split()]
    for place, token in enumerate(tokens[:-1]):
        if token in SWITCHES and tokens[place + 1] == "{":
            tokens[place : place + 2] = ["{", SWITCHES[token]]
    return " ".join(tokens)


def without_outer_space(tokens: Sequence[str]) -> Sequence[str]:
    """Leave out the space before and after a formula, which nobody sees; not if there is nothing else."""
    shown = [place for place, token in enumerate(tokens) if token not in SPACES]
    return tokens[shown[0] : shown[-1] + 1] if shown else tokens


_TOKEN: Final = re.compile(r"\\[A-Za-z]+\*?|\\.|\S", re.DOTALL)
_STRETCHED: Final = re.compile(r"\\(?:left|right)(?![A-Za-z])|\\[bB]igg?[lrm]?(?![A-Za-z])")
# What may stand beside a sign without a change of what is seen; a closing brace ends an exponent, and counts.
SILENT: Final = SPACES | {"{"}


@lru_cache(maxsize=4096)
def look_of(token: str) -> str:
    """Give what a token draws, in one spelling; nothing if it is space or stretches what follows."""
    if token in SPACES:
        return ""
    return one_name(_STRETCHED.sub("", token))


def picture_of(latex: str) -> tuple[str, ...]:
    """Give what readable LaTeX draws, so that spellings of one picture are equal."""
    return tuple(filter(None, map(look_of, _TOKEN.findall(_STRETCHED.sub(" ", latex)))))
