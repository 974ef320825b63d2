"""The one table of commands: what each takes as arguments, what it draws, and which group it belongs to.

A signature is a string with one letter an argument:
  m  math            o  optional math in [ ]        *  optional star
  t  text            l  length, as in 1.5em         L  optional length in [ ]
  d  bare length, as after \\kern                  
A command that is not in the table takes nothing and is printed as it is: TeX may know it, and if not says so.
"""

from typing import Final

SIGNATURES: Final[dict[str, str]] = {}


def _define(signature: str, names: str) -> frozenset[str]:
    commands = frozenset(f"\\{name}" for name in names.split())
    SIGNATURES.update(dict.fromkeys(commands, signature))
    return commands


# One argument, drawn over or under it. KaTeX 0.6 knew the narrow ones, so im2markup braces their argument.
NARROW_ACCENTS: Final = _define("m", "acute grave ddot tilde bar breve check hat vec dot")
WIDE_ACCENTS: Final = _define(
    "m",
    "widehat widetilde widecheck widebar mathring dddot ddddot overrightarrow overleftarrow overleftrightarrow"
    " underrightarrow underleftarrow underleftrightarrow overbrace underbrace underbar",
)
# im2markup gives these braces of their own around the braces of the argument.
LINES: Final = _define("m", "overline underline")
PHANTOMS: Final = _define("m", "phantom hphantom vphantom")

MATH_FONTS: Final = _define(
    "m",
    "mathrm mathit mathbf mathbb mathcal mathfrak mathscr mathsf mathtt mathnormal boldsymbol bm pmb Bbb bold frak",
)
FONT_ALIASES: Final = {r"\Bbb": r"\mathbb", r"\bold": r"\mathbf", r"\frak": r"\mathfrak"}
FONT_SWITCHES: Final = frozenset(
    r"\rm \bf \it \sl \sf \tt \sc \cal \mit \em \boldmath \unboldmath \bfseries \itshape \rmfamily \normalfont"
    r" \sffamily \ttfamily \mdseries \upshape \slshape \scshape".split()
)
SIZE_SWITCHES: Final = frozenset(
    r"\tiny \scriptsize \footnotesize \small \normalsize \large \Large \LARGE \huge \Huge".split()
)
CLASSES: Final = _define(
    "m", "mathop mathbin mathrel mathord mathopen mathclose mathpunct mathinner ensuremath smash"
)
LAPS: Final = _define("m", "mathllap mathrlap mathclap lefteqn cancel bcancel xcancel boxed")
FRACTIONS: Final = _define("mm", "frac dfrac tfrac cfrac")
BINOMIALS: Final = _define("mm", "binom dbinom tbinom")
STACKS: Final = _define("mm", "stackrel overset underset")
ROOTS: Final = _define("om", "sqrt")
ARROWS: Final = _define(
    "om",
    "xrightarrow xleftarrow xleftrightarrow xRightarrow xLeftarrow xLeftrightarrow xmapsto"
    " xhookrightarrow xhookleftarrow xrightharpoonup xleftharpoonup xrightleftharpoons",
)
_define("m", "pmod pod operatorname operatorname* operatornamewithlimits")
_define("llllmm", "genfrac")  # delimiters, thickness and style are taken as they are, like lengths

TEXTS: Final = _define(
    "t", "text mbox hbox textrm textbf textit textsf texttt textnormal textup textsc textsl textmd emph fbox"
    " llap rlap clap"
)
_define("LLt", "makebox framebox")
_define("lLLt", "raisebox")
_define("lt", "parbox")
LENGTHS: Final = _define("l", "hspace hspace* vspace vspace*")
_define("ll", "rule")
BARE_LENGTHS: Final = _define("d", "kern mkern mskip hskip vskip")
_define("dm", "raise lower")

# Text commands whose words im2markup writes as a math alphabet; the value is that alphabet.
TEXT_ALPHABETS: Final = {
    r"\text": r"\mathrm",
    r"\mbox": r"\mathrm",
    r"\hbox": r"\mathrm",
    r"\textrm": r"\mathrm",
    r"\textnormal": r"\mathrm",
    r"\textup": r"\mathrm",
    r"\textmd": r"\mathrm",
    r"\textbf": r"\mathbf",
    r"\textsf": r"\mathsf",
    r"\texttt": r"\mathtt",
}
# These keep their size inside a subscript, where the others shrink.
FIXED_SIZE_TEXTS: Final = frozenset({r"\mbox", r"\hbox"})

# Operators spelled in letters: im2markup writes them letter by letter. amsmath's own text where it has a space.
PLAIN_OPERATORS: Final = dict.fromkeys(
    r"\arcsin \arccos \arctan \arg \cos \cosh \cot \coth \csc \deg \dim \exp \hom \ker \lg \ln \log \sec \sin"
    r" \sinh \tan \tanh".split()
)
LIMIT_OPERATORS: Final = dict.fromkeys(r"\det \gcd \inf \lim \liminf \limsup \max \min \Pr \sup".split())
OPERATOR_LETTERS: Final[dict[str, tuple[str, ...]]] = {
    name: tuple(name[1:]) for name in (*PLAIN_OPERATORS, *LIMIT_OPERATORS)
} | {
    r"\liminf": ("l", "i", "m", r"\,", "i", "n", "f"),
    r"\limsup": ("l", "i", "m", r"\,", "s", "u", "p"),
}
# Operators that carry their limits above and below in display style ...
BIG_OPERATORS: Final = frozenset(
    r"\sum \prod \coprod \bigcap \bigcup \bigvee \bigwedge \bigoplus \bigotimes \bigodot \biguplus \bigsqcup"
    r" \mathop \operatorname* \operatornamewithlimits \varlimsup \varliminf \varinjlim \varprojlim".split()
) | frozenset(LIMIT_OPERATORS)
# ... and those that carry them at the side unless told otherwise.
SIDE_OPERATORS: Final = frozenset(
    r"\int \oint \iint \iiint \iiiint \idotsint \operatorname \smallint".split()
) | frozenset(PLAIN_OPERATORS)

STYLE_SWITCHES: Final = {r"\displaystyle": 0, r"\textstyle": 1, r"\scriptstyle": 2, r"\scriptscriptstyle": 3}
SPACES: Final = frozenset(
    "~ \\ \\, \\: \\; \\! \\> \\/ \\- \\* \\quad \\qquad \\enspace \\enskip \\thinspace \\medspace \\thickspace"
    " \\negthinspace \\negmedspace \\negthickspace \\space \\nobreakspace \\hfill \\hfil \\hss \\vss \\null"
    " \\strut \\mathstrut \\relax \\protect \\allowbreak \\nobreak \\noindent \\smallskip \\medskip \\bigskip"
    " \\limits \\nolimits \\displaylimits \\nonumber \\notag".split(" ")
)
STRUCTURAL: Final = (
    frozenset(
        "{ } _ ^ & \\\\ \\cr \\sp \\sb $ \\left. \\right. \\big \\Big \\bigg \\Bigg \\bigl \\Bigl \\biggl \\Biggl"
        " \\bigr \\Bigr \\biggr \\Biggr \\bigm \\Bigm \\biggm \\Biggm \\over \\atop \\middle \\stackrel \\overset"
        " \\underset \\substack \\operatorname \\operatorname* \\operatornamewithlimits \\noalign \\mathversion"
        " \\mathchoice \\vcenter \\unitlength \\arraystretch \\rule".split()
    )
    | SPACES
    | MATH_FONTS
    | FONT_SWITCHES
    | SIZE_SWITCHES
    | CLASSES
    | (LAPS - {r"\cancel", r"\bcancel", r"\xcancel", r"\boxed"})
    | PHANTOMS
    | (TEXTS - {r"\fbox"})
    | LENGTHS
    | BARE_LENGTHS
    | frozenset(STYLE_SWITCHES)
    | {r"\raise", r"\lower", r"\makebox", r"\raisebox", r"\parbox"}
)

# Bookkeeping that draws nothing inside a formula: dropped, with its argument.
DROPPED: Final = {r"\label": "n", r"\tag": "n", r"\tag*": "n", r"\nonumber": "", r"\notag": "", r"\displaybreak": ""}
COLORS: Final = {r"\color": "n", r"\textcolor": "n", r"\colorbox": "n"}

# Environments: what they become, and the style of their cells (0 display, 1 text, 2 script).
MATRICES: Final = {
    "matrix": None,
    "pmatrix": (r"\left(", r"\right)"),
    "bmatrix": (r"\left[", r"\right]"),
    "Bmatrix": (r"\left\{", r"\right\}"),
    "vmatrix": (r"\left|", r"\right|"),
    "Vmatrix": (r"\left\|", r"\right\|"),
}
CELL_STYLES: Final = {
    "array": 1,
    "tabular": 1,
    "cases": 1,
    "matrix": 1,
    "smallmatrix": 2,
    "aligned": 0,
    "gathered": 0,
    "split": 0,
    "alignedat": 0,
    "subarray": 2,
    "dcases": 0,
    "rcases": 1,
    "picture": 1,
}
# Displays of several lines: one line is read as a plain formula, more as the box with the same alignment.
DISPLAYS: Final = {
    "align": "aligned",
    "flalign": "aligned",
    "alignat": "alignedat",
    "eqnarray": "eqnarray",
    "gather": "gathered",
    "multline": "gathered",
    "split": "aligned",
    "equation": "equation",
    "displaymath": "equation",
    "math": "equation",
}
# Old plain TeX commands with rows in their argument.
ROW_COMMANDS: Final = {
    r"\matrix": "matrix",
    r"\pmatrix": "pmatrix",
    r"\cases": "cases",
    r"\eqalign": "aligned",
    r"\smallmatrix": "smallmatrix",
    r"\substack": "substack",
}

UNICODE: Final[dict[str, str]] = dict(
    zip(
        "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩϵϑϕϖϱς",
        r"\alpha \beta \gamma \delta \varepsilon \zeta \eta \theta \iota \kappa \lambda \mu \nu \xi \pi \rho \sigma"
        r" \tau \upsilon \varphi \chi \psi \omega \Gamma \Delta \Theta \Lambda \Xi \Pi \Sigma \Upsilon \Phi \Psi"
        r" \Omega \epsilon \vartheta \phi \varpi \varrho \varsigma".split(),
        strict=True,
    )
) | dict(
    zip(
        "−×÷±∓·∗∘•≤≥≠≈≡∼≃≅∝∞∂∇∫∮∑∏√∈∉∋⊂⊃⊆⊇∪∩∅∀∃¬∧∨→←↔⇒⇐⇔↦⟨⟩‖…⋯ℏℓℝℂℤℕℚ†‡⊗⊕⊥∥′″∣",
        r"- \times \div \pm \mp \cdot \ast \circ \bullet \leq \geq \neq \approx \equiv \sim \simeq \cong \propto"
        r" \infty \partial \nabla \int \oint \sum \prod \surd \in \notin \ni \subset \supset \subseteq \supseteq"
        r" \cup \cap \emptyset \forall \exists \neg \wedge \vee \rightarrow \leftarrow \leftrightarrow \Rightarrow"
        r" \Leftarrow \Leftrightarrow \mapsto \langle \rangle \| \ldots \cdots \hbar \ell \mathbb{R} \mathbb{C}"
        r" \mathbb{Z} \mathbb{N} \mathbb{Q} \dagger \ddagger \otimes \oplus \perp \parallel ' '' \mid".split(),
        strict=True,
    )
)
