"""Every sign that LaTeX, amssymb and mathtools draw, by the class that decides where it can stand.

A reader should know all of them, however rare: training data is made from this table
(`i2l.formulas.compose`), and a test list of signs is checked against it.
"""

from typing import Final


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
ARROWS: Final = _names(
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
