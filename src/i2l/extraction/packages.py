"""What TeX knows in a formula, and what stands in for the commands and environments of common packages.

TeX is taken to have amsmath, amssymb, bm and mathrsfs loaded: the table of commands says which of its records
these define, and the names that only they know were taken from their files and tried in TeX.

A stand-in writes a command of another package in terms of amsmath, so that a formula that uses it compiles
without the package. It draws the same symbols, if not always to the hair. What a paper defines itself comes
first.
"""

import re
from functools import cache
from typing import Final

from i2l.formulas import commands
from i2l.formulas.macros import Macro, read_preamble

# Names that LaTeX and those packages define and that the table of commands says nothing about.
_FURTHER_COMMANDS: Final = r"""
    cite footnote pageref Acute Alph AmS AmSfont ArgumentSpecification Bar BooleanFalse BooleanTrue Breve
    CaseSwitch Check CheckCommand CheckEncodingSubset DH DJ DOTSB DOTSI DOTSX Ddot DiscardShipoutBox Dot
    EndIncludeInRelease EndModuleRelease ExpandArgs Grave Hat IJ IeC IncludeInRelease IndentBox
    InputIfFileExists InsertMark LaTeX LaTeXe LinkTargetOff LinkTargetOn MakeLinkTarget MakeRobust
    MakeUppercase MessageBreak MultiIntegral NG NeedsTeXFormat NextLinkTarget NoCaseChange OmitIndent
    OptionNotUsed PreviousTotalPages RawIndent RawNoindent RawParEnd RawShipout ReadonlyShipoutCounter
    Relbar ReverseBoolean Roman ShipoutBox SplitArgument SplitList TH TeX TextOrMath TextSymbolUnavailable
    Tilde TrimSpaces Vec a abovedisplayshortskip abovedisplayskip accent active addcontentsline addpenalty
    addtocontents addtocounter addtolength addvspace adjdemerits advance afterassignment aftergroup align
    aligned alignedat allocationnumber allowdisplaybreaks alph arabic array arraycolsep arrayrulewidth
    asciispace badness baselineskip baselinestretch batchmode begingroup belowdisplayshortskip
    belowdisplayskip bezier bfdefault bgroup bigbreak bigskipamount binoppenalty bmdefine bmmax
    bordermatrix botfigrule botmark bottomfraction box boxmaxdepth braceld bracelu bracerd braceru break
    brokenpenalty capitalacute capitalbreve capitalcaron capitalcedilla capitalcircumflex capitaldieresis
    capitaldotaccent capitalgrave capitalhungarumlaut capitalmacron capitalnewtie capitalogonek
    capitalring capitaltie capitaltilde catcode center centering centerline char chardef citation cleaders
    cleardoublepage clearpage clubpenalty columnsep columnseprule columnwidth contentsline copy count
    countdef counterwithin counterwithout csname dasharrow dashbox date day dblfigrule
    dblfloatpagefraction dblfloatsep dbltextfloatsep dbltopfraction deadcycles def defaulthyphenchar
    defaultscriptratio defaultscriptscriptratio defaultskewchar delcode delimiter delimiterfactor
    delimitershortfall detokenize dh dimen dimendef dimeval dimexpr discretionary displayindent
    displaylines displaymath displaywidowpenalty displaywidth divide dj do document documentclass
    documentstyle dospecials dotfill doublehyphendemerits doublerulesep downbracefill dp dump eTeXversion
    edef egroup eject else emergencystretch emforce eminnershape emreset encodingdefault endgraf
    enlargethispage enumerate eqnarray eqno eqref equation errhelp errmessage errorcontextlines
    errorstopmode escapechar evensidemargin everycr everydisplay everyeof everyjob everymath everypar
    exhyphenpenalty expanded extracolsep extrafloats fam familydefault fboxrule fboxsep fi filbreak
    filecontents fill finalhyphendemerits firstmark floatingpenalty floatpagefraction floatsep flushbottom
    flushleft flushright fmtname fmtversion fnsymbol font fontchardp fontcharht fontdimen fontencoding
    fontfamily fontname fontseries fontseriesforce fontshape fontshapeforce fontsize fontsubfuzz footins
    footref footskip fpeval frame frenchspacing fussy futurelet gather gdef global globaldefs glossary
    goodbreak halign hangindent hbadness hdots hdotsfor headheight headsep heavymath heavysymbol hfuzz
    hglue hideoutput hideskip hidewidth hm hmmax holdinginserts hrule hrulefill hsize ht hyphenchar
    hyphenpenalty ialign ifmmode ignorespaces ignorespacesafterend ij immediate indent index insert
    interdisplaylinepenalty interfootnotelinepenalty interlinepenalty intertext inteval intextsep intop
    itdefault item itemindent itemize itemsep iterate jobname joinrel jot kerneltmpDoNotUse kill
    labelformat labelsep labelwidth language lastbox lastkern lastnodetype lastpenalty lastskip lccode
    leaders leavevmode leftarrowfill leftline leftmargin leftmargini leftmarginii leftmarginiii
    leftmarginiv leftmarginv leftmarginvi leftmark leftroot leftskip legacyoldstylenums leqno let lhook
    linebreak linepenalty lineskip lineskiplimit linespread linewidth loggingall loggingoutput long loop
    lowercase lrbox ltcmddate ltcmdhooksdate ltcmdhooksversion ltcmdversion ltfilehookdate
    ltfilehookversion lthooksdate lthooksversion ltmarksdate ltmarksversion ltmetadate ltmetaversion
    ltparadate ltparaversion ltshipoutdate ltshipoutversion magstep magstephalf makeatletter makeatother
    makeglossary makeindex makelabel mapstochar mark markboth markright marks math mathaccent mathaccentV
    mathalpha mathchar mathchardef mathcode mathdisplay mathdollar mathgroup mathhexbox mathpalette
    mathparagraph mathsection mathsterling mathsurround mathunderscore maxdeadcycles maxdepth maxdimen
    mddefault meaning medbreak medmuskip medskipamount message minalignsep minipage mintagsep month
    moveleft moveright mspace multiply multiput multispan multline multlinegap multlinetaggap muskip
    muskipdef narrower ng nobreakdash nobreakdashes nocite nocorr nocorrlist noexpand nofiles
    nointerlineskip nonfrenchspacing nonscript nopagebreak noprotrusion normalbaselines normalbaselineskip
    normalcolor normallineskip normallineskiplimit normalmarginpar normalsfcodes normalshape
    nulldelimiterspace nullfont number numberline numberwithin numexpr oalign obeycr obeyedline
    obeyedspace obeylines obeyspaces oddsidemargin offinterlineskip ointop oldstylenums onecolumn
    operatorfont outer output outputpenalty oval overfullrule overunderset paperheight paperwidth par
    paragraphmark parfillskip parindent parsep parshape parskip partopsep pdffilesize pdfgentounicode
    pdfhorigin pdftexrevision pdftexversion pdfvorigin penalty picture poptabs postdisplaypenalty
    predisplaypenalty pretolerance prevdepth primfrac protected pushtabs qbezier qbeziermax qopname quote
    radical raggedbottom raggedleft raggedright raisetag refstepcounter relbar relpenalty removelastskip
    repeat requestedLaTeXdate restorecr reversemarginpar rhook rightarrowfill rightline rightmargin
    rightmark rightskip rmdefault rmsubstdefault roman rootbox samepage savebox sbox scdefault scriptfont
    scriptscriptfont scriptspace secdef sectionmark selectfont seriesdefault setbox setcounter settodepth
    settoheight settowidth sfcode sfdefault sfsubstdefault shapedefault shipout shortstack shoveleft
    shoveright show showbox showboxbreadth showboxdepth showhyphens showoutput showoverfull showtokens
    skewchar skip skipdef skipeval sldefault sloppy sloppypar smallbreak smallskipamount spacefactor
    spaceskip special split splitfirstmark splitmaxdepth splittopskip sqrtsign sscdefault sscshape
    stepcounter stockheight stockwidth stop stretch string strutbox subarray subparagraphmark
    subsectionmark subsubsectionmark suppressfloats swdefault swshape symAMSa symAMSb symbol symletters
    symoperators tabbing tabbingsep tabcolsep tabskip tabular tabularnewline tencirc tencircw tenln tenlnw
    textacutedbl textascendercompwordmark textasciiacute textasciibreve textasciicaron textasciicircum
    textasciidieresis textasciigrave textasciimacron textasciitilde textasteriskcentered
    textbaht textbar textbardbl textbigcircle textblank textborn textbraceleft textbraceright
    textbrokenbar textbullet textcapitalcompwordmark textcelsius textcent textcentoldstyle textcircledP
    textcolonmonetary textcommaabove textcommabelow textcompsubstdefault textcompwordmark textcopyleft
    textcopyright textcurrency textdagger textdaggerdbl textdblhyphen textdblhyphenchar textdegree
    textdied textdiscount textdiv textdivorced textdollar textdollaroldstyle textdong textdownarrow
    texteightoldstyle textellipsis textemdash textendash textestimated texteuro textexclamdown
    textfiveoldstyle textfloatsep textflorin textfont textfouroldstyle textfraction textfractionsolidus
    textgravedbl textgreater textguarani textheight textinterrobang textinterrobangdown textlangle
    textlbrackdbl textleaf textleftarrow textlegacyasteriskcentered textlegacybardbl textlegacybullet
    textlegacydagger textlegacydaggerdbl textlegacyparagraph textlegacyperiodcentered textlegacysection
    textless textlira textlnot textlquill textmarried textmho textminus textmu textmusicalnote textnaira
    textnineoldstyle textnumero textohm textonehalf textoneoldstyle textonequarter textonesuperior
    textopenbullet textordfeminine textordmasculine textparagraph textperiodcentered textpertenthousand
    textperthousand textpeso textpilcrow textpm textquestiondown textquotedblleft textquotedblright
    textquoteleft textquoteright textquotesingle textquotestraightbase textquotestraightdblbase textrangle
    textrbrackdbl textrecipe textreferencemark textregistered textrightarrow textrquill textsection
    textservicemark textsevenoldstyle textsixoldstyle textssc textsterling textsubscript textsuperscript
    textsurd textsw textthreeoldstyle textthreequarters textthreequartersemdash textthreesuperior
    texttildelow texttimes texttrademark texttwelveudash texttwooldstyle texttwosuperior textulc
    textunderscore textuparrow textvisiblespace textwidth textwon textyen textzerooldstyle th thickmuskip
    thinlines thinmuskip thispagestyle time tmspace today toks toksdef tolerance topfigrule topfraction
    topmargin topmark topsep topskip trivlist ttdefault ttsubstdefault twocolumn typein typeout uccode
    uchyph ulcdefault ulcshape upbracefill updefault uproot usebox usecounter usefont usepackage vadjust
    valign value vbadness vbox vector veqno verb verbatim verbvisiblespace vfil vfilneg vfuzz vglue vrule
    vsize vsplit vtop wd widowpenalties widowpenalty wlog xdef xleaders year
"""
_COMMAND_NAME: Final = re.compile(r"\\([A-Za-z]+)\*?")
KNOWN_COMMANDS: Final = frozenset(_FURTHER_COMMANDS.split()) | {
    match[1]
    for name, command in commands.COMMANDS.items()
    if command.package == "latex" and (match := _COMMAND_NAME.fullmatch(name))
}
KNOWN_ENVIRONMENTS: Final = frozenset(
    f"{name}{star}"
    for name, environment in commands.ENVIRONMENTS.items()
    if environment.package == "latex"
    for star in ("", "*")[: 1 + environment.starred]
)
# What draws something else than a formula, with commands of its own.
DIAGRAMS: Final = re.compile(
    r"\\(?:begin\s*\{(?:tikz|CD\}|xy\}|feyn|pspicture|prooftree|forest|picture|axis|diagram|circuitikz|dynkin)"
    r"|(?:xymatrix|xygraph|Qcircuit|tikz|includegraphics|epsf\w*|psfig|inferrule|infer|diagram|young|ytableau"
    r"|Young|epsfig|feynmf|xy|put|rotatebox|scalebox|resizebox)(?![A-Za-z]))"
)
_NAMES: Final = re.compile(r"\\(?:begin\s*\{([^{}]*)\}|([A-Za-z]+)|.)", re.DOTALL)


def find_unknown(latex: str) -> str | None:
    """Name the first command or environment of a formula that TeX does not know."""
    for match in _NAMES.finditer(latex):
        environment, command = match[1], match[2]
        if command and command not in KNOWN_COMMANDS:
            return f"\\{command}"
        if environment and environment not in KNOWN_ENVIRONMENTS:
            return environment
    return None


_DEFINITIONS: Final = r"""
% mathtools, colonequals
\def\vcentcolon{\mathrel{\mathop{:}}}
\def\coloneqq{\mathrel{\mathop{:}}=}
\def\Coloneqq{\mathrel{\mathop{:}}\mathrel{\mathop{:}}=}
\def\coloneq{\mathrel{\mathop{:}}-}
\def\eqqcolon{=\mathrel{\mathop{:}}}
\def\eqcolon{-\mathrel{\mathop{:}}}
\def\dblcolon{\mathrel{\mathop{:}}\mathrel{\mathop{:}}}
\let\colonequals\coloneqq
\let\equalscolon\eqqcolon
\let\coloncolon\dblcolon
\def\mathrlap#1{\mathord{\rlap{$#1$}}}
\def\mathllap#1{\mathord{\llap{$#1$}}}
\def\mathclap#1{\mathord{#1}}
\def\clap#1{#1}
\def\vdotswithin#1{\vdots}
\def\shortvdotswithin#1{\vdots}
\newcommand\xhookrightarrow[2][]{\overset{#2}{\hookrightarrow}}
\newcommand\xhookleftarrow[2][]{\overset{#2}{\hookleftarrow}}
\newcommand\xmapsto[2][]{\overset{#2}{\longmapsto}}
\newcommand\xRightarrow[2][]{\overset{#2}{\Longrightarrow}}
\newcommand\xLeftarrow[2][]{\overset{#2}{\Longleftarrow}}
\newcommand\xleftrightarrow[2][]{\overset{#2}{\longleftrightarrow}}
\newcommand\xLeftrightarrow[2][]{\overset{#2}{\Longleftrightarrow}}
\newcommand\xtwoheadrightarrow[2][]{\overset{#2}{\twoheadrightarrow}}
\def\prescript#1#2#3{{}^{#1}_{#2}#3}
\def\adjustlimits{}
\def\smashoperator#1{#1}
\def\cramped#1{#1}
\def\overbracket#1{\overline{#1}}
\def\underbracket#1{\underline{#1}}
\def\mapsfrom{\leftarrow\!\shortmid}
\def\nuparrow{\not\uparrow}
\def\lparen{(}
\def\rparen{)}
% braket, physics
\def\bra#1{\langle #1|}
\def\ket#1{|#1\rangle}
\def\braket#1{\langle #1\rangle}
\def\ketbra#1#2{|#1\rangle\langle #2|}
\def\Bra#1{\left\langle #1\right|}
\def\Ket#1{\left|#1\right\rangle}
\def\Braket#1{\left\langle #1\right\rangle}
\def\set#1{\{#1\}}
\def\Set#1{\left\{#1\right\}}
\def\i@over#1#2#3#4{\IfValueTF{#4}{\frac{#1\IfValueT{#2}{^{#2}}#3}{#1#4\IfValueT{#2}{^{#2}}}}%
  {\frac{#1\IfValueT{#2}{^{#2}}}{#1#3\IfValueT{#2}{^{#2}}}}}
\NewDocumentCommand\pdv{s o m g}{\i@over{\partial}{#2}{#3}{#4}}
\NewDocumentCommand\dv{s o m g}{\i@over{\mathrm{d}}{#2}{#3}{#4}}
\let\odv\dv
\def\dd#1{\mathrm{d}#1}
\def\abs#1{\left|#1\right|}
\def\norm#1{\left\|#1\right\|}
\def\qty#1{\left(#1\right)}
\def\expval#1{\left\langle #1\right\rangle}
\def\ev#1{\left\langle #1\right\rangle}
\def\mel#1#2#3{\left\langle #1\middle|#2\middle|#3\right\rangle}
\def\comm#1#2{\left[#1,#2\right]}
\def\acomm#1#2{\left\{#1,#2\right\}}
\def\vb#1{\mathbf{#1}}
\def\va#1{\vec{#1}}
\def\vu#1{\hat{#1}}
\def\grad{\nabla}
\def\curl{\nabla\times}
\def\laplacian{\nabla^2}
\def\order#1{\mathcal{O}\left(#1\right)}
\def\eval#1{\left.#1\right|}
\DeclareMathOperator\tr{tr}
\DeclareMathOperator\Tr{Tr}
\DeclareMathOperator\rank{rank}
% slashed, cancel, ulem, nicefrac, units, xfrac, tcolorbox, empheq
\def\slashed#1{\not{#1}}
\def\cancel#1{#1}
\def\bcancel#1{#1}
\def\xcancel#1{#1}
\def\cancelto#1#2{#2}
\newcommand\nicefrac[3][]{#2/#3}
\newcommand\sfrac[3][]{#2/#3}
\newcommand\unitfrac[3][]{#1\,\mathrm{#2}/\mathrm{#3}}
\newcommand\unit[2][]{#1\,\mathrm{#2}}
\newcommand\tcboxmath[2][]{\boxed{#2}}
\newcommand\Aboxed[1]{\boxed{#1}}
% beamer, amsthm, cleveref, hyperref, color: nothing of them is in a formula's picture
\newcommand\pause[1][]{}
\def\uncover<#1>#2{#2}
\def\qed{}
\def\qedsymbol{\square}
\def\pushQED#1{}
\def\popQED{}
\newcommand\textcolor[3][]{#3}
\newcommand\color[2][]{}
\newcommand\colorbox[3][]{#3}
\def\xspace{}
\def\phantomsection{}
\newcommand\hyperref[2][]{#2}
\def\href#1#2{#2}
\def\hypertarget#1#2{#2}
\def\texorpdfstring#1#2{#1}
\def\shortintertext#1{}
\def\MoveEqLeft{}
\def\cref#1{\ref{#1}}
\def\Cref#1{\ref{#1}}
\def\autoref#1{\ref{#1}}
\def\citep#1{\cite{#1}}
\def\citet#1{\cite{#1}}
% fonts and symbols
\def\mathds#1{\mathbb{#1}}
\def\mathbbm#1{\mathbb{#1}}
\def\mathbbmss#1{\mathbb{#1}}
\def\bbone{\mathbb{1}}
\def\EuScript#1{\mathcal{#1}}
\def\mathpzc#1{\mathcal{#1}}
\def\llbracket{[\![}
\def\rrbracket{]\!]}
\def\lBrack{[\![}
\def\rBrack{]\!]}
\def\sslash{/\!/}
\def\fint{-\!\!\!\!\!\!\int}
\def\oiint{\iint}
\def\ointclockwise{\oint}
\def\ointctrclockwise{\oint}
\def\varointclockwise{\oint}
\def\ocircle{\bigcirc}
\def\trianglelefteqslant{\trianglelefteq}
\def\trianglerighteqslant{\trianglerighteq}
\def\iddots{\cdot^{\cdot^{\cdot}}}
\def\adots{\cdot^{\cdot^{\cdot}}}
\def\wideparen#1{\widehat{#1}}
\def\degree{^\circ}
\def\celsius{^\circ\mathrm{C}}
\def\textdegree{$^\circ$}
\def\upmu{\mu}
\def\uppi{\pi}
\def\updelta{\delta}
\def\Perp{\perp\!\!\!\perp}
\def\independent{\perp\!\!\!\perp}
"""
# Environments by those of amsmath: what opens and what closes them.
STANDIN_ENVIRONMENTS: Final = {
    name: tuple(environment.stand_in.split("..."))
    for name, environment in commands.ENVIRONMENTS.items()
    if environment.stand_in
}
_EDGE: Final = re.compile(r"\\(begin|end)\s*\{([^{}]*)\}(?:(?<=\*\})\[[lcr]\])?")


def replace_environments(latex: str) -> str:
    """Write environments of packages as those of amsmath."""
    return _EDGE.sub(_stand_in, latex)


def _stand_in(match: re.Match[str]) -> str:
    texts = STANDIN_ENVIRONMENTS.get(match[2])
    return match.group() if texts is None else texts[match[1] == "end"]


@cache
def stand_ins() -> dict[str, Macro]:
    """Return the commands of packages that have a stand-in, as macros."""
    return read_preamble(_DEFINITIONS)
