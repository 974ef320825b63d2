"""The commands and environments that TeX knows in a formula, with amsmath, amssymb, bm and mathrsfs loaded.

The names were taken from the files of LaTeX and of those packages, and TeX was asked which of them it knows.

Commands of common packages in terms of amsmath, so that a formula that uses them compiles without them.

A stand-in draws the same symbols, if not always to the hair; what a paper defines itself comes first.
"""

import re
from functools import cache
from typing import Final

from i2l.formulas.macros import Macro, read_preamble

_COMMANDS: Final = r"""
    tiny scriptsize footnotesize small large Large LARGE huge Huge cite footnote pageref of
    AA AE Acute Alph AmS AmSfont And ArgumentSpecification Arrowvert Bar Bbb Bbbk Big Bigg Biggl Biggm Biggr
    Bigl Bigm Bigr BooleanFalse BooleanTrue Box Breve Bumpeq Cap CaseSwitch Check CheckCommand
    CheckEncodingSubset Cup DH DJ DOTSB DOTSI DOTSX Ddot Delta Diamond DiscardShipoutBox Dot Doteq Downarrow
    EndIncludeInRelease EndModuleRelease ExpandArgs Finv Game Gamma Grave H Hat IJ IeC Im IncludeInRelease
    IndentBox InputIfFileExists InsertMark Join L LaTeX LaTeXe Lambda Leftarrow Leftrightarrow LinkTargetOff
    LinkTargetOn Lleftarrow Longleftarrow Longleftrightarrow Longrightarrow Lsh MakeLinkTarget MakeRobust
    MakeUppercase MessageBreak MultiIntegral NG NeedsTeXFormat NextLinkTarget NoCaseChange O OE Omega
    OmitIndent OptionNotUsed P Phi Pi Pr PreviousTotalPages Psi RawIndent RawNoindent RawParEnd RawShipout
    Re ReadonlyShipoutCounter Relbar ReverseBoolean Rightarrow Roman Rrightarrow Rsh S SS ShipoutBox Sigma
    SplitArgument SplitList Subset Supset TH TeX TextOrMath TextSymbolUnavailable Theta Tilde TrimSpaces
    Uparrow Updownarrow Upsilon Vdash Vec Vert Vvdash Xi a aa above abovedisplayshortskip abovedisplayskip
    abovewithdelims accent active acute addcontentsline addpenalty addtocontents addtocounter addtolength
    addvspace adjdemerits advance ae afterassignment aftergroup aleph align aligned alignedat
    allocationnumber allowbreak allowdisplaybreaks alph alpha amalg and angle approx approxeq arabic arccos
    arcsin arctan arg array arraycolsep arrayrulewidth arraystretch arrowvert asciispace ast asymp atop
    atopwithdelims b backepsilon backprime backsim backsimeq backslash badness bar barwedge baselineskip
    baselinestretch batchmode because begin begingroup belowdisplayshortskip belowdisplayskip beta beth
    between bezier bf bfdefault bfseries bgroup big bigbreak bigcap bigcirc bigcup bigg biggl biggm biggr
    bigl bigm bigodot bigoplus bigotimes bigr bigskip bigskipamount bigsqcup bigstar bigtriangledown
    bigtriangleup biguplus bigvee bigwedge binom binoppenalty blacklozenge blacksquare blacktriangle
    blacktriangledown blacktriangleleft blacktriangleright bm bmdefine bmmax bmod bold boldmath boldsymbol
    bordermatrix bot botfigrule botmark bottomfraction bowtie box boxdot boxed boxmaxdepth boxminus boxplus
    boxtimes brace braceld bracelu bracerd braceru bracevert brack break breve brokenpenalty buildrel bullet
    bumpeq c cal cap capitalacute capitalbreve capitalcaron capitalcedilla capitalcircumflex capitaldieresis
    capitaldotaccent capitalgrave capitalhungarumlaut capitalmacron capitalnewtie capitalogonek capitalring
    capitaltie capitaltilde cases catcode cdot cdotp cdots center centerdot centering centerline cfrac char
    chardef check checkmark chi choose circ circeq circle circlearrowleft circlearrowright circledR circledS
    circledast circledcirc circleddash citation clap cleaders cleardoublepage clearpage cline clubpenalty
    clubsuit colon columnsep columnseprule columnwidth complement cong contentsline coprod copy copyright
    cos cosh cot coth count countdef counterwithin counterwithout cr crcr csc csname cup curlyeqprec
    curlyeqsucc curlyvee curlywedge curvearrowleft curvearrowright d dag dagger daleth dasharrow dashbox
    dashleftarrow dashrightarrow dashv date day dbinom dblfigrule dblfloatpagefraction dblfloatsep
    dbltextfloatsep dbltopfraction ddag ddagger ddddot dddot ddot ddots deadcycles def defaulthyphenchar
    defaultscriptratio defaultscriptscriptratio defaultskewchar deg delcode delimiter delimiterfactor
    delimitershortfall delta det detokenize dfrac dh diagdown diagup diamond diamondsuit digamma dim dimen
    dimendef dimeval dimexpr discretionary displaybreak displayindent displaylimits displaylines displaymath
    displaystyle displaywidowpenalty displaywidth div divide divideontimes dj do document documentclass
    documentstyle dospecials dot doteq doteqdot dotfill dotplus dots dotsb dotsc dotsi dotsm dotso
    doublebarwedge doublecap doublecup doublehyphendemerits doublerulesep downarrow downbracefill
    downdownarrows downharpoonleft downharpoonright dp dump eTeXversion edef egroup eject ell else em
    emergencystretch emforce eminnershape emph empty emptyset emreset encodingdefault end endgraf
    enlargethispage enskip enspace ensuremath enumerate epsilon eqcirc eqnarray eqno eqref eqsim eqslantgtr
    eqslantless equation equiv errhelp errmessage errorcontextlines errorstopmode escapechar eta eth
    evensidemargin everycr everydisplay everyeof everyjob everymath everypar exhyphenpenalty exists exp
    expandafter expanded extracolsep extrafloats fallingdotseq fam familydefault fbox fboxrule fboxsep fi
    filbreak filecontents fill finalhyphendemerits firstmark flat floatingpenalty floatpagefraction floatsep
    flushbottom flushleft flushright fmtname fmtversion fnsymbol font fontchardp fontcharht fontdimen
    fontencoding fontfamily fontname fontseries fontseriesforce fontshape fontshapeforce fontsize
    fontsubfuzz footins footref footskip forall fpeval frac frak frame framebox frenchspacing frown fussy
    futurelet gamma gather gcd gdef ge genfrac geq geqq geqslant gets gg ggg gggtr gimel global globaldefs
    glossary gnapprox gneq gneqq gnsim goodbreak grave gtrapprox gtrdot gtreqless gtreqqless gtrless gtrsim
    gvertneqq halign hangindent hat hbadness hbar hbox hdots hdotsfor headheight headsep heartsuit heavymath
    heavysymbol hfil hfill hfilneg hfuzz hglue hideoutput hideskip hidewidth hline hm hmmax holdinginserts
    hom hookleftarrow hookrightarrow hphantom hrule hrulefill hsize hskip hslash hspace hss ht hyphenchar
    hyphenpenalty i ialign idotsint iff ifmmode ignorespaces ignorespacesafterend iiiint iiint iint ij imath
    immediate impliedby implies in indent index inf infty injlim insert int intercal interdisplaylinepenalty
    interfootnotelinepenalty interlinepenalty intertext inteval intextsep intop iota it itdefault item
    itemindent itemize itemsep iterate itshape j jmath jobname joinrel jot k kappa ker kern
    kerneltmpDoNotUse kill l lVert label labelformat labelsep labelwidth lambda land langle language lastbox
    lastkern lastnodetype lastpenalty lastskip lbrace lbrack lccode lceil ldotp ldots le leaders leadsto
    leavevmode left leftarrow leftarrowfill leftarrowtail lefteqn leftharpoondown leftharpoonup
    leftleftarrows leftline leftmargin leftmargini leftmarginii leftmarginiii leftmarginiv leftmarginv
    leftmarginvi leftmark leftrightarrow leftrightarrows leftrightharpoons leftrightsquigarrow leftroot
    leftskip leftthreetimes legacyoldstylenums leq leqno leqq leqslant lessapprox lessdot lesseqgtr
    lesseqqgtr lessgtr lesssim let lfloor lg lgroup lhd lhook lim liminf limits limsup line linebreak
    linepenalty lineskip lineskiplimit linespread linethickness linewidth ll llap llcorner lll llless
    lmoustache ln lnapprox lneq lneqq lnot lnsim log loggingall loggingoutput long longleftarrow
    longleftrightarrow longmapsto longrightarrow loop looparrowleft looparrowright lor lower lowercase
    lozenge lq lrbox lrcorner ltcmddate ltcmdhooksdate ltcmdhooksversion ltcmdversion ltfilehookdate
    ltfilehookversion lthooksdate lthooksversion ltimes ltmarksdate ltmarksversion ltmetadate ltmetaversion
    ltparadate ltparaversion ltshipoutdate ltshipoutversion lvert lvertneqq magstep magstephalf makeatletter
    makeatother makebox makeglossary makeindex makelabel maltese mapsto mapstochar mark markboth markright
    marks math mathaccent mathaccentV mathalpha mathbb mathbf mathbin mathcal mathchar mathchardef
    mathchoice mathclose mathcode mathdisplay mathdollar mathellipsis mathfrak mathgroup mathhexbox
    mathinner mathit mathnormal mathop mathopen mathord mathpalette mathparagraph mathpunct mathrel mathring
    mathrm mathscr mathsection mathsf mathsterling mathstrut mathsurround mathtt mathunderscore mathversion
    matrix max maxdeadcycles maxdepth maxdimen mbox mddefault mdseries meaning measuredangle medbreak
    medmuskip medskip medskipamount medspace message mho mid middle min minalignsep minipage mintagsep mit
    mkern mod models month moveleft moveright mp mskip mspace mu multicolumn multimap multiply multiput
    multispan multline multlinegap multlinetaggap muskip muskipdef nLeftarrow nLeftrightarrow nRightarrow
    nVDash nVdash nabla narrower natural ncong ne nearrow neg negmedspace negthickspace negthinspace neq
    nexists ng ngeq ngeqq ngeqslant ngtr ni nleftarrow nleftrightarrow nleq nleqq nleqslant nless nmid
    noalign nobreak nobreakdash nobreakdashes nobreakspace nocite nocorr nocorrlist noexpand nofiles
    noindent nointerlineskip nolimits nolinebreak nonfrenchspacing nonscript nonumber nopagebreak
    noprotrusion normalbaselines normalbaselineskip normalcolor normalfont normallineskip
    normallineskiplimit normalmarginpar normalsfcodes normalshape normalsize not notag notin nparallel nprec
    npreceq nrightarrow nshortmid nshortparallel nsim nsubseteq nsubseteqq nsucc nsucceq nsupseteq
    nsupseteqq ntriangleleft ntrianglelefteq ntriangleright ntrianglerighteq nu null nulldelimiterspace
    nullfont number numberline numberwithin numexpr nvDash nvdash nwarrow o oalign obeycr obeyedline
    obeyedspace obeylines obeyspaces oddsidemargin odot oe offinterlineskip oint ointop oldstylenums omega
    ominus omit onecolumn ooalign operatorfont operatorname operatornamewithlimits oplus or oslash otimes
    outer output outputpenalty oval over overbrace overfullrule overleftarrow overleftrightarrow overline
    overrightarrow overset overunderset overwithdelims owns paperheight paperwidth par paragraphmark
    parallel parbox parfillskip parindent parsep parshape parskip partial partopsep pdffilesize
    pdfgentounicode pdfhorigin pdftexrevision pdftexversion pdfvorigin penalty perp phantom phi pi picture
    pitchfork pm pmatrix pmb pmod pod poptabs postdisplaypenalty pounds prec precapprox preccurlyeq preceq
    precnapprox precneqq precnsim precsim predisplaypenalty pretolerance prevdepth prime primfrac prod
    projlim propto protect protected psi pushtabs put qbezier qbeziermax qopname qquad quad quote r rVert
    radical raggedbottom raggedleft raggedright raise raisebox raisetag rangle rbrace rbrack rceil ref
    refstepcounter relax relbar relpenalty removelastskip repeat requestedLaTeXdate restorecr restriction
    reversemarginpar rfloor rgroup rhd rho rhook right rightarrow rightarrowfill rightarrowtail
    rightharpoondown rightharpoonup rightleftarrows rightleftharpoons rightline rightmargin rightmark
    rightrightarrows rightskip rightsquigarrow rightthreetimes risingdotseq rlap rm rmdefault rmfamily
    rmoustache rmsubstdefault roman romannumeral root rootbox rq rtimes rule rvert samepage savebox sb sbox
    sc scdefault scriptfont scriptscriptfont scriptscriptstyle scriptspace scriptstyle scshape searrow sec
    secdef sectionmark selectfont seriesdefault setbox setcounter setlength setminus settodepth settoheight
    settowidth sf sfcode sfdefault sffamily sfsubstdefault shapedefault sharp shipout shortmid shortparallel
    shortstack shoveleft shoveright show showbox showboxbreadth showboxdepth showhyphens showoutput
    showoverfull showtokens sideset sigma sim simeq sin sinh skew skewchar skip skipdef skipeval sl slash
    sldefault sloppy sloppypar slshape smallbreak smallfrown smallint smallsetminus smallskip
    smallskipamount smallsmile smash smile sp space spacefactor spaceskip spadesuit span special
    sphericalangle split splitfirstmark splitmaxdepth splittopskip sqcap sqcup sqrt sqrtsign sqsubset
    sqsubseteq sqsupset sqsupseteq square ss sscdefault sscshape stackrel star stepcounter stockheight
    stockwidth stop stretch string strut strutbox subarray subparagraphmark subsectionmark subset subseteq
    subseteqq subsetneq subsetneqq substack subsubsectionmark succ succapprox succcurlyeq succeq succnapprox
    succneqq succnsim succsim sum sup suppressfloats supset supseteq supseteqq supsetneq supsetneqq surd
    swarrow swdefault swshape symAMSa symAMSb symbol symletters symoperators t tabbing tabbingsep tabcolsep
    tabskip tabular tabularnewline tag tan tanh tau tbinom tencirc tencircw tenln tenlnw text textacutedbl
    textascendercompwordmark textasciiacute textasciibreve textasciicaron textasciicircum textasciidieresis
    textasciigrave textasciimacron textasciitilde textasteriskcentered textbackslash textbaht textbar
    textbardbl textbf textbigcircle textblank textborn textbraceleft textbraceright textbrokenbar textbullet
    textcapitalcompwordmark textcelsius textcent textcentoldstyle textcircled textcircledP textcolonmonetary
    textcommaabove textcommabelow textcompsubstdefault textcompwordmark textcopyleft textcopyright
    textcurrency textdagger textdaggerdbl textdblhyphen textdblhyphenchar textdegree textdied textdiscount
    textdiv textdivorced textdollar textdollaroldstyle textdong textdownarrow texteightoldstyle textellipsis
    textemdash textendash textestimated texteuro textexclamdown textfiveoldstyle textfloatsep textflorin
    textfont textfouroldstyle textfraction textfractionsolidus textgravedbl textgreater textguarani
    textheight textinterrobang textinterrobangdown textit textlangle textlbrackdbl textleaf textleftarrow
    textlegacyasteriskcentered textlegacybardbl textlegacybullet textlegacydagger textlegacydaggerdbl
    textlegacyparagraph textlegacyperiodcentered textlegacysection textless textlira textlnot textlquill
    textmarried textmd textmho textminus textmu textmusicalnote textnaira textnineoldstyle textnormal
    textnumero textohm textonehalf textoneoldstyle textonequarter textonesuperior textopenbullet
    textordfeminine textordmasculine textparagraph textperiodcentered textpertenthousand textperthousand
    textpeso textpilcrow textpm textquestiondown textquotedblleft textquotedblright textquoteleft
    textquoteright textquotesingle textquotestraightbase textquotestraightdblbase textrangle textrbrackdbl
    textrecipe textreferencemark textregistered textrightarrow textrm textrquill textsc textsection
    textservicemark textsevenoldstyle textsf textsixoldstyle textsl textssc textsterling textstyle
    textsubscript textsuperscript textsurd textsw textthreeoldstyle textthreequarters
    textthreequartersemdash textthreesuperior texttildelow texttimes texttrademark texttt texttwelveudash
    texttwooldstyle texttwosuperior textulc textunderscore textup textuparrow textvisiblespace textwidth
    textwon textyen textzerooldstyle tfrac th therefore theta thickapprox thicklines thickmuskip thicksim
    thickspace thinlines thinmuskip thinspace thispagestyle tilde time times tmspace to today toks toksdef
    tolerance top topfigrule topfraction topmargin topmark topsep topskip triangle triangledown triangleleft
    trianglelefteq triangleq triangleright trianglerighteq trivlist tt ttdefault ttfamily ttsubstdefault
    twocolumn twoheadleftarrow twoheadrightarrow typein typeout u uccode uchyph ulcdefault ulcorner ulcshape
    unboldmath underbar underbrace underleftarrow underleftrightarrow underline underrightarrow underset
    unitlength unlhd unrhd uparrow upbracefill updefault updownarrow upharpoonleft upharpoonright uplus
    uppercase uproot upshape upsilon upuparrows urcorner usebox usecounter usefont usepackage v vDash
    vadjust valign value varDelta varGamma varLambda varOmega varPhi varPi varPsi varSigma varTheta
    varUpsilon varXi varbigtriangledown varbigtriangleup varepsilon varinjlim varkappa varliminf varlimsup
    varnothing varphi varpi varprojlim varpropto varrho varsigma varsubsetneq varsubsetneqq varsupsetneq
    varsupsetneqq vartheta vartriangle vartriangleleft vartriangleright vbadness vbox vcenter vdash vdots
    vec vector vee veebar veqno verb verbatim verbvisiblespace vert vfil vfilneg vfuzz vglue vline vphantom
    vrule vsize vskip vspace vsplit vss vtop wd wedge widehat widetilde widowpenalties widowpenalty wlog wp
    wr xdef xi xleaders xleftarrow xrightarrow year yen zeta
"""
COMMANDS: Final = frozenset(_COMMANDS.split())
_ENVIRONMENTS: Final = """
    array tabular matrix pmatrix bmatrix Bmatrix vmatrix Vmatrix smallmatrix cases aligned alignedat gathered
    split subarray minipage align align* flalign flalign* alignat alignat* xalignat xalignat*
    xxalignat gather gather* multline multline* eqnarray eqnarray* equation equation* displaymath math
    picture center
"""
KNOWN_ENVIRONMENTS: Final = frozenset(_ENVIRONMENTS.split())
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
        if command and command not in COMMANDS:
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
    "dcases": (r"\begin{cases}", r"\end{cases}"),
    "dcases*": (r"\begin{cases}", r"\end{cases}"),
    "cases*": (r"\begin{cases}", r"\end{cases}"),
    "rcases": (r"\left.\begin{array}{l}", r"\end{array}\right\}"),
    "drcases": (r"\left.\begin{array}{l}", r"\end{array}\right\}"),
    "psmallmatrix": (r"\left(\begin{smallmatrix}", r"\end{smallmatrix}\right)"),
    "bsmallmatrix": (r"\left[\begin{smallmatrix}", r"\end{smallmatrix}\right]"),
    "Bsmallmatrix": (r"\left\{\begin{smallmatrix}", r"\end{smallmatrix}\right\}"),
    "vsmallmatrix": (r"\left|\begin{smallmatrix}", r"\end{smallmatrix}\right|"),
    "matrix*": (r"\begin{matrix}", r"\end{matrix}"),
    "pmatrix*": (r"\begin{pmatrix}", r"\end{pmatrix}"),
    "bmatrix*": (r"\begin{bmatrix}", r"\end{bmatrix}"),
    "vmatrix*": (r"\begin{vmatrix}", r"\end{vmatrix}"),
    "multlined": (r"\begin{gathered}", r"\end{gathered}"),
    "lgathered": (r"\begin{gathered}", r"\end{gathered}"),
    "darray": (r"\begin{array}", r"\end{array}"),
    "subequations": ("", ""),
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
    """Give the commands of packages that have a stand-in."""
    return read_preamble(_DEFINITIONS)
