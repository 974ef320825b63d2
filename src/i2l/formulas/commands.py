r"""The one table of commands: what each takes as arguments, what it draws, and which group it belongs to.

A signature is a string with one letter an argument:
  m  math            o  optional math in [ ]        *  optional star
  t  text            l  length, as in 1.5em         L  optional length in [ ]
  d  bare length, as after \kern
A command that is not in the table takes nothing and is printed as it is: TeX may know it, and if not says so.

Every sign that LaTeX, amssymb and mathtools draw, by the class that decides where it can stand.

A reader should know all of them, however rare: training data is made from this table
(`i2l.formulas.compose`), and a test list of signs is checked against it.

Environments: what each becomes, and in which style its cells are set.
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
    "widehat widetilde widecheck widebar mathring dddot ddddot overrightarrow overleftarrow"
    " overleftrightarrow underrightarrow underleftarrow underleftrightarrow overbrace underbrace underbar",
)
# im2markup gives these braces of their own around the braces of the argument.
LINES: Final = _define("m", "overline underline")
PHANTOMS: Final = _define("m", "phantom hphantom vphantom")

MATH_FONTS: Final = _define(
    "m",
    "mathrm mathit mathbf mathbb mathcal mathfrak mathscr mathsf mathtt mathnormal"
    " boldsymbol bm pmb Bbb bold frak",
)
FONT_ALIASES: Final = {r"\Bbb": r"\mathbb", r"\bold": r"\mathbf", r"\frak": r"\mathfrak"}
FONT_SWITCHES: Final = frozenset(
    [
        r"\rm",
        r"\bf",
        r"\it",
        r"\sl",
        r"\sf",
        r"\tt",
        r"\sc",
        r"\cal",
        r"\mit",
        r"\em",
        r"\boldmath",
        r"\unboldmath",
        r"\bfseries",
        r"\itshape",
        r"\rmfamily",
        r"\normalfont",
        r"\sffamily",
        r"\ttfamily",
        r"\mdseries",
        r"\upshape",
        r"\slshape",
        r"\scshape",
    ]
)
SIZE_SWITCHES: Final = frozenset(
    [
        r"\tiny",
        r"\scriptsize",
        r"\footnotesize",
        r"\small",
        r"\normalsize",
        r"\large",
        r"\Large",
        r"\LARGE",
        r"\huge",
        r"\Huge",
    ]
)
CLASSES: Final = _define(
    "m", "mathop mathbin mathrel mathord mathopen mathclose mathpunct mathinner ensuremath smash"
)
LAPS: Final = _define("m", "mathllap mathrlap mathclap lefteqn cancel bcancel xcancel boxed")
FRACTIONS: Final = _define("mm", "frac dfrac tfrac cfrac")
SLASHED: Final = _define("mm", "nicefrac sfrac")
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
    "t",
    "text mbox hbox textrm textbf textit textsf texttt textnormal textup textsc textsl textmd emph fbox"
    " llap rlap clap",
)
_define("LLt", "makebox framebox")
_define("lLLt", "raisebox")
_define("lt", "parbox")
LENGTHS: Final = _define("l", "hspace hspace* vspace vspace*")
_define("Lll", "rule")
BARE_LENGTHS: Final = _define("d", "kern mkern mskip hskip vskip")
BOX_MOVERS: Final = _define("dm", "raise lower")  # TeX wants a box after them, not an alphabet

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

# Operators spelled in letters: im2markup writes them letter by letter; amsmath has a space in some.
PLAIN_OPERATORS: Final = dict.fromkeys(
    [
        r"\arcsin",
        r"\arccos",
        r"\arctan",
        r"\arg",
        r"\cos",
        r"\cosh",
        r"\cot",
        r"\coth",
        r"\csc",
        r"\deg",
        r"\dim",
        r"\exp",
        r"\hom",
        r"\ker",
        r"\lg",
        r"\ln",
        r"\log",
        r"\sec",
        r"\sin",
        r"\sinh",
        r"\tan",
        r"\tanh",
    ]
)
LIMIT_OPERATORS: Final = dict.fromkeys(
    [r"\det", r"\gcd", r"\inf", r"\lim", r"\liminf", r"\limsup", r"\max", r"\min", r"\Pr", r"\sup"]
)
OPERATOR_LETTERS: Final[dict[str, tuple[str, ...]]] = {
    name: tuple(name[1:]) for name in (*PLAIN_OPERATORS, *LIMIT_OPERATORS)
} | {
    r"\liminf": ("l", "i", "m", r"\,", "i", "n", "f"),
    r"\limsup": ("l", "i", "m", r"\,", "s", "u", "p"),
}
# Operators that carry their limits above and below in display style ...
BIG_OPERATORS: Final = frozenset(
    [
        r"\sum",
        r"\prod",
        r"\coprod",
        r"\bigcap",
        r"\bigcup",
        r"\bigvee",
        r"\bigwedge",
        r"\bigoplus",
        r"\bigotimes",
        r"\bigodot",
        r"\biguplus",
        r"\bigsqcup",
        r"\mathop",
        r"\operatorname*",
        r"\operatornamewithlimits",
        r"\varlimsup",
        r"\varliminf",
        r"\varinjlim",
        r"\varprojlim",
    ]
) | frozenset(LIMIT_OPERATORS)
# ... and those that carry them at the side unless told otherwise.
SIDE_OPERATORS: Final = frozenset(
    [r"\int", r"\oint", r"\iint", r"\iiint", r"\iiiint", r"\idotsint", r"\operatorname", r"\smallint"]
) | frozenset(PLAIN_OPERATORS)

STYLE_SWITCHES: Final = {r"\displaystyle": 0, r"\textstyle": 1, r"\scriptstyle": 2, r"\scriptscriptstyle": 3}
SWITCHES: Final = FONT_SWITCHES | SIZE_SWITCHES | STYLE_SWITCHES.keys()
SPACES: Final = frozenset(
    [
        "~",
        "\\",
        "\\,",
        "\\:",
        "\\;",
        "\\!",
        "\\>",
        "\\/",
        "\\-",
        "\\*",
        "\\quad",
        "\\qquad",
        "\\enspace",
        "\\enskip",
        "\\thinspace",
        "\\medspace",
        "\\thickspace",
        "\\negthinspace",
        "\\negmedspace",
        "\\negthickspace",
        "\\space",
        "\\nobreakspace",
        "\\hfill",
        "\\hfil",
        "\\hss",
        "\\vss",
        "\\null",
        "\\strut",
        "\\mathstrut",
        "\\relax",
        "\\protect",
        "\\allowbreak",
        "\\nobreak",
        "\\noindent",
        "\\smallskip",
        "\\medskip",
        "\\bigskip",
        "\\limits",
        "\\nolimits",
        "\\displaylimits",
        "\\nonumber",
        "\\notag",
    ]
)
STRUCTURAL: Final = (
    frozenset(
        [
            "{",
            "}",
            "_",
            "^",
            "&",
            "\\\\",
            "\\cr",
            "\\sp",
            "\\sb",
            "$",
            "\\left.",
            "\\right.",
            "\\big",
            "\\Big",
            "\\bigg",
            "\\Bigg",
            "\\bigl",
            "\\Bigl",
            "\\biggl",
            "\\Biggl",
            "\\bigr",
            "\\Bigr",
            "\\biggr",
            "\\Biggr",
            "\\bigm",
            "\\Bigm",
            "\\biggm",
            "\\Biggm",
            "\\over",
            "\\atop",
            "\\middle",
            "\\stackrel",
            "\\overset",
            "\\underset",
            "\\substack",
            "\\operatorname",
            "\\operatorname*",
            "\\operatornamewithlimits",
            "\\noalign",
            "\\mathversion",
            "\\mathchoice",
            "\\vcenter",
            "\\unitlength",
            "\\arraystretch",
            "\\rule",
        ]
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

# amsmath looks at what follows these, so braces around a cell that ends in one change its width.
DOTS: Final = frozenset(
    [r"\cdots", r"\ldots", r"\dots", r"\dotsb", r"\dotsc", r"\dotsm", r"\dotsi", r"\dotso"]
)

# Bookkeeping that draws nothing inside a formula: dropped, with its argument.
DROPPED: Final = {
    r"\label": "n",
    r"\tag": "n",
    r"\tag*": "n",
    r"\nonumber": "",
    r"\notag": "",
    r"\displaybreak": "",
}
COLORS: Final = {r"\color": "n", r"\textcolor": "n", r"\colorbox": "n"}


def _names(text: str) -> tuple[str, ...]:
    return tuple(name if name in "+-*/=<>:!?" else f"\\{name}" for name in text.split())


LETTERS: Final = _names(
    """
    alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa varkappa lambda mu nu xi
    pi varpi rho varrho sigma varsigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi
    Sigma Upsilon Phi Psi Omega varGamma varDelta varTheta varLambda varXi varPi varSigma varUpsilon
    varPhi varPsi varOmega digamma aleph beth gimel daleth Bbbk Finv Game Im Re ell hbar hslash imath
    jmath wp mho eth partial nabla infty emptyset varnothing complement circledS Box Diamond blacksquare
    blacklozenge bigstar triangle triangledown blacktriangle blacktriangledown clubsuit diamondsuit
    heartsuit spadesuit flat natural sharp top bot angle measuredangle sphericalangle backprime diagup
    diagdown forall exists nexists neg surd checkmark maltese circledR yen pounds S P $ % # & _ dagger
    ddagger prime backslash cdots ldots vdots ddots ! ?
    """
)
BINARIES: Final = _names(
    """
    + - * / pm mp times div cdot ast star circ bullet cap cup Cap Cup uplus sqcap sqcup vee wedge curlyvee
    curlywedge veebar barwedge doublebarwedge setminus smallsetminus wr diamond bigcirc bigtriangleup
    bigtriangledown triangleleft triangleright lhd rhd unlhd unrhd oplus ominus otimes oslash odot
    circledast circledcirc circleddash boxplus boxminus boxtimes boxdot amalg dagger ddagger centerdot
    dotplus divideontimes ltimes rtimes leftthreetimes rightthreetimes intercal lessdot gtrdot bmod
    """
)
RELATIONS: Final = _names(
    """
    = < > : leq geq neq equiv sim simeq approx cong propto asymp doteq prec succ preceq succeq ll gg lll
    ggg subset supset subseteq supseteq sqsubset sqsupset sqsubseteq sqsupseteq in ni notin vdash dashv
    models mid parallel perp smile frown bowtie Join leqq geqq leqslant geqslant eqslantless eqslantgtr
    lesssim gtrsim lessapprox gtrapprox approxeq lessgtr gtrless lesseqgtr gtreqless lesseqqgtr gtreqqless
    Doteq risingdotseq fallingdotseq backsim backsimeq subseteqq supseteqq Subset Supset preccurlyeq
    succcurlyeq curlyeqprec curlyeqsucc precsim succsim precapprox succapprox vartriangleleft
    vartriangleright trianglelefteq trianglerighteq vDash Vdash Vvdash smallsmile smallfrown shortmid
    shortparallel bumpeq Bumpeq thicksim thickapprox eqsim eqcirc circeq triangleq varpropto between
    pitchfork therefore because backepsilon blacktriangleleft blacktriangleright vartriangle nless ngtr
    nleq ngeq nleqslant ngeqslant nleqq ngeqq lneq gneq lneqq gneqq lvertneqq gvertneqq lnsim gnsim
    lnapprox gnapprox nprec nsucc npreceq nsucceq precneqq succneqq precnsim succnsim precnapprox
    succnapprox nsim ncong nshortmid nshortparallel nmid nparallel nvdash nvDash nVdash nVDash
    ntriangleleft ntriangleright ntrianglelefteq ntrianglerighteq nsubseteq nsupseteq nsubseteqq
    nsupseteqq subsetneq supsetneq varsubsetneq varsupsetneq subsetneqq supsetneqq varsubsetneqq
    varsupsetneqq coloneqq eqqcolon Coloneqq vcentcolon dblcolon
    """
)
ARROW_SIGNS: Final = _names(
    """
    to leftarrow leftrightarrow Rightarrow Leftarrow Leftrightarrow longrightarrow longleftarrow
    longleftrightarrow Longrightarrow Longleftarrow Longleftrightarrow implies impliedby iff mapsto
    longmapsto hookrightarrow hookleftarrow rightharpoonup rightharpoondown leftharpoonup leftharpoondown
    rightleftharpoons leftrightharpoons nearrow searrow swarrow nwarrow uparrow downarrow updownarrow
    Uparrow Downarrow Updownarrow dashrightarrow dashleftarrow leftleftarrows rightrightarrows
    leftrightarrows rightleftarrows Lleftarrow Rrightarrow twoheadleftarrow twoheadrightarrow
    leftarrowtail rightarrowtail looparrowleft looparrowright curvearrowleft curvearrowright
    circlearrowleft circlearrowright Lsh Rsh upuparrows downdownarrows upharpoonleft upharpoonright
    downharpoonleft downharpoonright multimap leftrightsquigarrow rightsquigarrow nleftarrow nrightarrow
    nLeftarrow nRightarrow nleftrightarrow nLeftrightarrow
    """
)
OPERATORS: Final = _names(
    """
    sum prod coprod int oint iint iiint iiiint idotsint bigcap bigcup bigsqcup bigvee bigwedge bigoplus
    bigotimes bigodot biguplus varlimsup varliminf varinjlim varprojlim
    """
)
ACCENTS: Final = _names(
    """
    hat check tilde acute grave dot ddot dddot ddddot breve bar vec mathring widehat widetilde overline
    underline overrightarrow overleftarrow overleftrightarrow underrightarrow underleftarrow
    underleftrightarrow overbrace underbrace boxed cancel bcancel xcancel
    """
)
ALPHABETS: Final = _names("mathrm mathbf mathit mathsf mathtt mathbb mathcal mathfrak mathscr boldsymbol")
STRETCHED_ARROWS: Final = _names(
    "xrightarrow xleftarrow xleftrightarrow xRightarrow xLeftarrow xLeftrightarrow xmapsto xhookrightarrow"
    " xhookleftarrow xrightleftharpoons"
)
# What can stand after \left and \right.
FENCES: Final = (
    ("(", ")"),
    ("[", "]"),
    (r"\{", r"\}"),
    (r"\langle", r"\rangle"),
    (r"\lfloor", r"\rfloor"),
    (r"\lceil", r"\rceil"),
    ("|", "|"),
    (r"\|", r"\|"),
    (r"\lgroup", r"\rgroup"),
    (r"\lmoustache", r"\rmoustache"),
    (r"\ulcorner", r"\urcorner"),
    (".", "|"),
)


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
