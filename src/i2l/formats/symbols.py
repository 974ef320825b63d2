"""The Unicode character of every sign that LaTeX draws, and of every letter in every alphabet."""

from typing import Final


def _pairs(text: str) -> dict[str, str]:
    words = text.split()
    return {f"\\{name}": sign for name, sign in zip(words[::2], words[1::2], strict=True)}


GREEK: Final = _pairs(
    """
    alpha α  beta β  gamma γ  delta δ  epsilon ϵ  varepsilon ε  zeta ζ  eta η  theta θ  vartheta ϑ  iota ι
    kappa κ  varkappa ϰ  lambda λ  mu μ  nu ν  xi ξ  pi π  varpi ϖ  rho ρ  varrho ϱ  sigma σ  varsigma ς
    tau τ  upsilon υ  phi ϕ  varphi φ  chi χ  psi ψ  omega ω  digamma ϝ
    """
)
CAPITALS: Final = _pairs(
    """
    Gamma Γ  Delta Δ  Theta Θ  Lambda Λ  Xi Ξ  Pi Π  Sigma Σ  Upsilon Υ  Phi Φ  Psi Ψ  Omega Ω
    """
)
# Letters that have one shape only, whatever the alphabet.
_LETTERLIKE: Final = _pairs(
    """
    varGamma 𝛤  varDelta 𝛥  varTheta 𝛩  varLambda 𝛬  varXi 𝛯  varPi 𝛱  varSigma 𝛴  varUpsilon 𝛶  varPhi 𝛷
    varPsi 𝛹  varOmega 𝛺  aleph ℵ  beth ℶ  gimel ℷ  daleth ℸ  Bbbk 𝕜  Finv Ⅎ  Game ⅁  Im ℑ  Re ℜ  ell ℓ
    hbar ℏ  hslash ℏ  imath ı  jmath ȷ  wp ℘  mho ℧  eth ð  partial ∂  nabla ∇  infty ∞  emptyset ∅
    varnothing ∅  complement ∁  circledS Ⓢ  Box □  Diamond ◇  blacksquare ■  blacklozenge ⧫  bigstar ★
    triangle △  triangledown ▿  blacktriangle ▴  blacktriangledown ▾  clubsuit ♣  diamondsuit ♢
    heartsuit ♡  spadesuit ♠  flat ♭  natural ♮  sharp ♯  top ⊤  bot ⊥  angle ∠  measuredangle ∡
    sphericalangle ∢  backprime ‵  diagup ╱  diagdown ╲  forall ∀  exists ∃  nexists ∄  neg ¬  surd √
    checkmark ✓  maltese ✠  circledR ®  yen ¥  pounds £  S §  P ¶  $ $  % %  # #  & &  _ _  prime ′
    backslash \\  cdots ⋯  ldots …  vdots ⋮  ddots ⋱  dots …  dotsc …  dotso …  dotsb ⋯  dotsm ⋯  dotsi ⋯
    AA Å  L Ł  l ł  O Ø  o ø  ae æ  AE Æ  oe œ  OE Œ  ss ß  i ı  j ȷ  aa å  lq ‘  copyright ©
    iddots ⋰  adots ⋰  square □  arrowvert |  Arrowvert ‖  bracevert |  textbackslash \\
    """
)
_BINARIES: Final = _pairs(
    """
    pm ±  mp ∓  times ×  div ÷  cdot ⋅  ast ∗  star ⋆  circ ∘  bullet •  cap ∩  cup ∪  Cap ⋒  Cup ⋓
    uplus ⊎  sqcap ⊓  sqcup ⊔  vee ∨  wedge ∧  curlyvee ⋎  curlywedge ⋏  veebar ⊻  barwedge ⊼
    doublebarwedge ⩞  setminus ∖  smallsetminus ∖  wr ≀  diamond ⋄  bigcirc ◯  bigtriangleup △
    bigtriangledown ▽  triangleleft ◁  triangleright ▷  lhd ⊲  rhd ⊳  unlhd ⊴  unrhd ⊵  oplus ⊕  ominus ⊖
    otimes ⊗  oslash ⊘  odot ⊙  circledast ⊛  circledcirc ⊚  circleddash ⊝  boxplus ⊞  boxminus ⊟
    boxtimes ⊠  boxdot ⊡  amalg ⨿  dagger †  ddagger ‡  centerdot ·  dotplus ∔  divideontimes ⋇  ltimes ⋉
    rtimes ⋊  leftthreetimes ⋋  rightthreetimes ⋌  intercal ⊺  lessdot ⋖  gtrdot ⋗
    """
)
_RELATIONS: Final = _pairs(
    """
    leq ≤  geq ≥  neq ≠  equiv ≡  sim ∼  simeq ≃  approx ≈  cong ≅  propto ∝  asymp ≍  doteq ≐  prec ≺
    succ ≻  preceq ⪯  succeq ⪰  ll ≪  gg ≫  lll ⋘  ggg ⋙  subset ⊂  supset ⊃  subseteq ⊆  supseteq ⊇
    sqsubset ⊏  sqsupset ⊐  sqsubseteq ⊑  sqsupseteq ⊒  in ∈  ni ∋  notin ∉  vdash ⊢  dashv ⊣  models ⊧
    mid ∣  parallel ∥  perp ⟂  smile ⌣  frown ⌢  bowtie ⋈  Join ⋈  leqq ≦  geqq ≧  leqslant ⩽  geqslant ⩾
    eqslantless ⪕  eqslantgtr ⪖  lesssim ≲  gtrsim ≳  lessapprox ⪅  gtrapprox ⪆  approxeq ≊  lessgtr ≶
    gtrless ≷  lesseqgtr ⋚  gtreqless ⋛  lesseqqgtr ⪋  gtreqqless ⪌  Doteq ≑  risingdotseq ≓
    fallingdotseq ≒  backsim ∽  backsimeq ⋍  subseteqq ⫅  supseteqq ⫆  Subset ⋐  Supset ⋑  preccurlyeq ≼
    succcurlyeq ≽  curlyeqprec ⋞  curlyeqsucc ⋟  precsim ≾  succsim ≿  precapprox ⪷  succapprox ⪸
    vartriangleleft ⊲  vartriangleright ⊳  trianglelefteq ⊴  trianglerighteq ⊵  vDash ⊨  Vdash ⊩  Vvdash ⊪
    smallsmile ⌣  smallfrown ⌢  shortmid ∣  shortparallel ∥  bumpeq ≏  Bumpeq ≎  thicksim ∼  thickapprox ≈
    eqsim ≂  eqcirc ≖  circeq ≗  triangleq ≜  varpropto ∝  between ≬  pitchfork ⋔  therefore ∴  because ∵
    backepsilon ϶  blacktriangleleft ◀  blacktriangleright ▶  vartriangle △  nless ≮  ngtr ≯  nleq ≰
    ngeq ≱  nleqslant ⩽̸  ngeqslant ⩾̸  nleqq ≦̸  ngeqq ≧̸  lneq ⪇  gneq ⪈  lneqq ≨  gneqq ≩  lvertneqq ≨
    gvertneqq ≩  lnsim ⋦  gnsim ⋧  lnapprox ⪉  gnapprox ⪊  nprec ⊀  nsucc ⊁  npreceq ⪯̸  nsucceq ⪰̸
    precneqq ⪵  succneqq ⪶  precnsim ⋨  succnsim ⋩  precnapprox ⪹  succnapprox ⪺  nsim ≁  ncong ≇
    nshortmid ∤  nshortparallel ∦  nmid ∤  nparallel ∦  nvdash ⊬  nvDash ⊭  nVdash ⊮  nVDash ⊯
    ntriangleleft ⋪  ntriangleright ⋫  ntrianglelefteq ⋬  ntrianglerighteq ⋭  nsubseteq ⊈  nsupseteq ⊉
    nsubseteqq ⫅̸  nsupseteqq ⫆̸  subsetneq ⊊  supsetneq ⊋  varsubsetneq ⊊  varsupsetneq ⊋  subsetneqq ⫋
    supsetneqq ⫌  varsubsetneqq ⫋  varsupsetneqq ⫌  coloneqq ≔  eqqcolon ≕  Coloneqq ⩴  vcentcolon ∶
    dblcolon ∷  colon :  iff ⟺  implies ⟹  impliedby ⟸
    """
)
_ARROWS: Final = _pairs(
    """
    to →  leftarrow ←  leftrightarrow ↔  Rightarrow ⇒  Leftarrow ⇐  Leftrightarrow ⇔  longrightarrow ⟶
    longleftarrow ⟵  longleftrightarrow ⟷  Longrightarrow ⟹  Longleftarrow ⟸  Longleftrightarrow ⟺
    mapsto ↦  longmapsto ⟼  hookrightarrow ↪  hookleftarrow ↩  rightharpoonup ⇀  rightharpoondown ⇁
    leftharpoonup ↼  leftharpoondown ↽  rightleftharpoons ⇌  leftrightharpoons ⇋  nearrow ↗  searrow ↘
    swarrow ↙  nwarrow ↖  uparrow ↑  downarrow ↓  updownarrow ↕  Uparrow ⇑  Downarrow ⇓  Updownarrow ⇕
    dashrightarrow ⇢  dashleftarrow ⇠  leftleftarrows ⇇  rightrightarrows ⇉  leftrightarrows ⇆
    rightleftarrows ⇄  Lleftarrow ⇚  Rrightarrow ⇛  twoheadleftarrow ↞  twoheadrightarrow ↠
    leftarrowtail ↢  rightarrowtail ↣  looparrowleft ↫  looparrowright ↬  curvearrowleft ↶
    curvearrowright ↷  circlearrowleft ↺  circlearrowright ↻  Lsh ↰  Rsh ↱  upuparrows ⇈  downdownarrows ⇊
    upharpoonleft ↿  upharpoonright ↾  downharpoonleft ⇃  downharpoonright ⇂  multimap ⊸
    leftrightsquigarrow ↭  rightsquigarrow ⇝  nleftarrow ↚  nrightarrow ↛  nLeftarrow ⇍  nRightarrow ⇏
    nleftrightarrow ↮  nLeftrightarrow ⇎
    """
)
LARGE: Final = _pairs(
    """
    sum ∑  prod ∏  coprod ∐  int ∫  oint ∮  iint ∬  iiint ∭  iiiint ⨌  smallint ∫  bigcap ⋂  bigcup ⋃
    bigsqcup ⨆  bigvee ⋁  bigwedge ⋀  bigoplus ⨁  bigotimes ⨂  bigodot ⨀  biguplus ⨄
    """
)
FENCES: Final = _pairs(
    r"""
    { {  } }  | ‖  langle ⟨  rangle ⟩  lfloor ⌊  rfloor ⌋  lceil ⌈  rceil ⌉  lvert |  rvert |  lVert ‖
    rVert ‖  vert |  Vert ‖  lbrack [  rbrack ]  lbrace {  rbrace }  lgroup ⟮  rgroup ⟯  lmoustache ⎰
    rmoustache ⎱  ulcorner ⌜  urcorner ⌝  llcorner ⌞  lrcorner ⌟  llbracket ⟦  rrbracket ⟧  backslash \
    arrowvert |  Arrowvert ‖  bracevert ⎪  uparrow ↑  downarrow ↓  updownarrow ↕  Uparrow ⇑  Downarrow ⇓
    Updownarrow ⇕
    """
)
OPENING: Final = frozenset("([{⟨⌊⌈⟮⎰⌜⌞⟦")
CLOSING: Final = frozenset(")]}⟩⌋⌉⟯⎱⌝⌟⟧")
_OPEN_NAMES: Final = frozenset([r"\lvert", r"\lVert"])
_CLOSE_NAMES: Final = frozenset([r"\rvert", r"\rVert"])

# The character, and its class as TeX has it: ord, large, bin, rel, open, close, punct.
SIGNS: Final[dict[str, tuple[str, str]]] = (
    {name: (sign, "ord") for name, sign in (_LETTERLIKE | GREEK | CAPITALS).items()}
    | {name: (sign, "bin") for name, sign in _BINARIES.items()}
    | {name: (sign, "rel") for name, sign in (_RELATIONS | _ARROWS).items()}
    | {name: (sign, "large") for name, sign in LARGE.items()}
    | {
        name: (
            sign,
            "open"
            if sign in OPENING or name in _OPEN_NAMES
            else "close"
            if sign in CLOSING or name in _CLOSE_NAMES
            else "ord",
        )
        for name, sign in FENCES.items()
        if name not in _ARROWS
    }
    | {
        r"\colon": (":", "punct"),
        r"\slash": ("/", "ord"),
        r"\ldotp": (".", "punct"),
        r"\cdotp": ("⋅", "punct"),
    }
    | {sign: (sign, "open") for sign in "(["}
    | {sign: (sign, "close") for sign in ")]!?"}
    | {sign: (sign, "punct") for sign in ",;"}
    | {sign: (sign, "rel") for sign in "=<>:"}
    | {"+": ("+", "bin"), "-": ("−", "bin"), "*": ("∗", "bin")}
    | {sign: (sign, "ord") for sign in '/|.@`"'}
)

RELATIONS: Final = frozenset(sign for sign, kind in SIGNS.values() if kind == "rel")
# Commands that draw a sign in text too.
TEXT_SIGNS: Final = frozenset(
    f"\\{name}"
    for name in [
        "AA",
        "aa",
        "L",
        "l",
        "O",
        "o",
        "ae",
        "AE",
        "oe",
        "OE",
        "ss",
        "i",
        "j",
        "S",
        "P",
        "pounds",
        "copyright",
        "dots",
        "ldots",
        "lq",
    ]
)

# Marks above and below: the combining character, and the one that stands alone in MathML and Word.
ACCENTS: Final = {
    r"\hat": ("\u0302", "^"),
    r"\check": ("\u030c", "ˇ"),
    r"\tilde": ("\u0303", "~"),
    r"\acute": ("\u0301", "´"),
    r"\grave": ("\u0300", "`"),
    r"\dot": ("\u0307", "˙"),
    r"\ddot": ("\u0308", "¨"),
    r"\dddot": ("\u20db", "⃛"),
    r"\ddddot": ("\u20dc", "⃜"),
    r"\breve": ("\u0306", "˘"),
    r"\bar": ("\u0304", "¯"),
    r"\vec": ("\u20d7", "→"),
    r"\mathring": ("\u030a", "˚"),
    r"\widehat": ("\u0302", "^"),
    r"\widetilde": ("\u0303", "~"),
    r"\widecheck": ("\u030c", "ˇ"),
    r"\widebar": ("\u0305", "‾"),
    r"\overline": ("\u0305", "‾"),
    r"\underline": ("\u0332", "_"),
    r"\underbar": ("\u0332", "_"),
    r"\overrightarrow": ("\u20d7", "→"),
    r"\overleftarrow": ("\u20d6", "←"),
    r"\overleftrightarrow": ("\u20e1", "↔"),
    r"\underrightarrow": ("\u20ef", "→"),
    r"\underleftarrow": ("\u20ee", "←"),
    r"\underleftrightarrow": ("\u034d", "↔"),
    r"\overbrace": ("⏞", "⏞"),
    r"\underbrace": ("⏟", "⏟"),
}
STRETCHED: Final = {
    r"\xrightarrow": "→",
    r"\xleftarrow": "←",
    r"\xleftrightarrow": "↔",
    r"\xRightarrow": "⇒",
    r"\xLeftarrow": "⇐",
    r"\xLeftrightarrow": "⇔",
    r"\xmapsto": "↦",
    r"\xhookrightarrow": "↪",
    r"\xhookleftarrow": "↩",
    r"\xrightharpoonup": "⇀",
    r"\xleftharpoonup": "↼",
    r"\xrightleftharpoons": "⇌",
}

# Where each alphabet starts: capitals, small letters, digits, capital Greek, small Greek.
_ALPHABETS: Final[dict[tuple[str, bool], tuple[int, int, int, int, int]]] = {
    ("", False): (0x1D434, 0x1D44E, 0, 0, 0x1D6FC),  # the italic of mathematics; Greek capitals stand upright
    ("", True): (0x1D468, 0x1D482, 0x1D7CE, 0x1D6A8, 0x1D736),
    ("rm", True): (0x1D400, 0x1D41A, 0x1D7CE, 0x1D6A8, 0x1D6C2),
    ("it", False): (0x1D434, 0x1D44E, 0, 0x1D6E2, 0x1D6FC),
    ("it", True): (0x1D468, 0x1D482, 0x1D7CE, 0x1D71C, 0x1D736),
    ("cal", False): (0x1D49C, 0x1D4B6, 0, 0, 0),
    ("cal", True): (0x1D4D0, 0x1D4EA, 0, 0, 0),
    ("frak", False): (0x1D504, 0x1D51E, 0, 0, 0),
    ("frak", True): (0x1D56C, 0x1D586, 0, 0, 0),
    ("bb", False): (0x1D538, 0x1D552, 0x1D7D8, 0, 0),
    ("bb", True): (0x1D538, 0x1D552, 0x1D7D8, 0, 0),
    ("sf", False): (0x1D5A0, 0x1D5BA, 0x1D7E2, 0, 0),
    ("sf", True): (0x1D5D4, 0x1D5EE, 0x1D7EC, 0, 0),
    ("tt", False): (0x1D670, 0x1D68A, 0x1D7F6, 0, 0),
    ("tt", True): (0x1D670, 0x1D68A, 0x1D7F6, 0, 0),
}
# Letters that Unicode had before it had the alphabets.
_OLDER: Final = dict(zip("𝑕𝒝𝒠𝒡𝒣𝒤𝒧𝒨𝒭𝒺𝒼𝓄𝔆𝔋𝔌𝔕𝔝𝔺𝔿𝕅𝕇𝕈𝕉𝕑", "ℎℬℰℱℋℐℒℳℛℯℊℴℭℌℑℜℨℂℍℕℙℚℝℤ", strict=True))
_GREEK_VARIANTS: Final = {"∂": 25, "ϵ": 26, "ϑ": 27, "ϰ": 28, "ϕ": 29, "ϱ": 30, "ϖ": 31}


def in_alphabet(sign: str, font: str, *, bold: bool) -> str:
    """Give a letter or digit as the character of a mathematical alphabet; what has none there stays as it is.

    Args:
        sign: one character.
        font: "" for the usual italic, or rm, it, cal, scr, frak, bb, sf, tt.
        bold: whether it is bold.
    """
    starts = _ALPHABETS.get(("cal" if font == "scr" else font, bold))
    if starts is None:
        return sign
    capitals, small, digits, greek_capitals, greek = starts
    code = 0
    if "A" <= sign <= "Z":
        code = capitals + ord(sign) - ord("A")
    elif "a" <= sign <= "z":
        code = small + ord(sign) - ord("a")
    elif "0" <= sign <= "9" and digits:
        code = digits + ord(sign) - ord("0")
    elif "Α" <= sign <= "Ω" and greek_capitals:
        code = greek_capitals + ord(sign) - ord("Α")
    elif greek and "α" <= sign <= "ω":
        code = greek + ord(sign) - ord("α")
    elif greek and sign in _GREEK_VARIANTS and (sign != "∂" or bold):
        code = greek + _GREEK_VARIANTS[sign]
    elif sign == "∇" and bold and greek_capitals:
        code = greek_capitals + 25
    return _OLDER.get(chr(code), chr(code)) if code else sign
