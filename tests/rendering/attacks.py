"""Two hundred and more formulas that try to read, write, embed, loop, grow or change a neighbour.

`python -m tests.rendering.attacks FOLDER` renders all of them between good formulas and tells in JSON what
came of it. The folder holds `secret.tex` with the canary, which anybody may read: only the isolation stops
them.
"""

import json
import os
import sys
from pathlib import Path

SECRET = "80461357926840573196248035"  # not those of pi: TeX says them as its version
GOOD = r"\frac{\alpha_{%d}}{\sum x}"

# @F is the file with the canary, @D its folder, @U leads up to the root, @P is the process that asks.
REACH = r"""
\input{/etc/passwd}
\immediate\write18{cat @F > out.tex}\input{out.tex}
\openin5=@F \read5 to\x \x
\csname in\endcsname\csname put\endcsname{@F}
\csname @@input\endcsname @F
\input{@F}
\input @F
\catcode`\@=11 \@@input @F
\scantokens{\input @F }
\input|"cat @F"
\input{~/.bashrc}
\InputIfFileExists{@F}{}{}
\pdffiledump offset 0 length 99{@F}
\pdfmdfivesum file{@F}
\pdffilesize{@F}
\immediate\pdfobj file{@F}x
\immediate\pdfobj stream file{@F}x
\immediate\csname tex_pdfobj:D\endcsname stream file{@F}x
\pdfprimitive\pdfobj stream file{@F}\pdfrefobj\pdflastobj x
\pdfximage{@D/secret.png}\pdfrefximage\pdflastximage
\pdfmapfile{@F}x
\pdfmapline{=cmmi12 CMMI12 <<@F}x
\csname tex_mapline:D\endcsname{=cmmi12 CMMI12 <<@F}x
\special{psfile=@F}x
\pdfcatalog{/OpenAction << /S /Launch /F (@F) >>}x
\font\f=@F \f x
\includegraphics{@F}
\directlua{os.execute("cat @F")}
\immediate\openout3=@D/written.txt \immediate\write3{x}\immediate\closeout3 x
\immediate\openout3=../written.txt \immediate\write3{x}\immediate\closeout3 x
\immediate\openout3=formulas.tex \immediate\write3{x}x
\immediate\openout3=formulas.log \immediate\write3{i2l:end 1 0v-1}\end
\openin5=$SELFAUTOPARENT@U@F \read5 to\x\hbox{\x}
\openin5=$SELFAUTOPARENT@F \read5 to\x\hbox{\x}
\openin5=$TEXMFROOT@U@F \read5 to\x\hbox{\x}
\openin5=$SELFAUTOPARENT@U/etc/passwd \read5 to\x\hbox{\x}
\openin5=$SELFAUTOPARENT@U/proc/self/environ \read5 to\x\hbox{\x}
\openin5=$SELFAUTOPARENT@U/proc/@P/environ \catcode0=12 \read5 to\x\hbox{\x}
\openin5=$SELFAUTOPARENT@U/proc/1/environ \read5 to\x\hbox{\x}
\openin5=$SELFAUTOPARENT@U/dev/zero \read5 to\x\hbox{\x}
\openin5=$SELFAUTOPARENT@U/dev/tty \read5 to\x\hbox{\x}
\openin5=$SELFAUTOPARENT@U/dev/random \read5 to\x\hbox{x}
\openin5=\string~root@U@F \read5 to\x\hbox{\x}
\openin5={$SELFAUTOPARENT@U@F} \readline5 to\x\hbox{\x}
\input{$SELFAUTOPARENT@U@F}
\input $SELFAUTOPARENT@U@F
\hbox{\input{$SELFAUTOPARENT@U@F}}
\InputIfFileExists{$SELFAUTOPARENT@U@F}{}{\relax}
\IfFileExists{$SELFAUTOPARENT@U@F}{\input{$SELFAUTOPARENT@U@F}}{x}
\csname @@input\endcsname $SELFAUTOPARENT@U@F
\catcode`\@=11 \@@input $SELFAUTOPARENT@U@F
\catcode`\@=11 \@input{$SELFAUTOPARENT@U@F}
\scantokens{\input $SELFAUTOPARENT@U@F }
\everyeof{\noexpand}\edef\x{\csname @@input\endcsname $SELFAUTOPARENT@U@F }\x
\catcode`\@=11 \RequirePackage{$SELFAUTOPARENT@U@F}
\begin{filecontents}{x}\end{filecontents}\input{$SELFAUTOPARENT@U@F}
\csname tex_filedump:D\endcsname offset 0 length 99{$SELFAUTOPARENT@U@F}
\csname tex_filesize:D\endcsname{$SELFAUTOPARENT@U@F}
\csname file_size:n\endcsname{$SELFAUTOPARENT@U@F}
\csname file_hex_dump:n\endcsname{$SELFAUTOPARENT@U@F}
\pdffiledump offset 0 length 99{formulas.tex}
\^^70dffiledump offset 0 length 99{$SELFAUTOPARENT@U@F}
\^^69nput $SELFAUTOPARENT@U@F
^^5cinput $SELFAUTOPARENT@U@F
\font\f=$SELFAUTOPARENT@U@F \f x
\font\f=$SELFAUTOPARENT@U@D/secret \f x
\^^70dfximage{$SELFAUTOPARENT@U@D/secret.pdf}x
\csname tex_ximage:D\endcsname{$SELFAUTOPARENT@U@D/secret.pdf}x
\immediate\^^70dfobj stream file{$SELFAUTOPARENT@U@F}\pdfrefobj\pdflastobj x
\immediate\csname pdf\expandafter\string\csname obj\endcsname\endcsname file{@F}x
\expandafter\let\expandafter\x\csname pdfobj\endcsname\immediate\x stream file{$SELFAUTOPARENT@U@F}x
\csname tex_mapfile:D\endcsname{$SELFAUTOPARENT@U@F}x
\openin5=formulas.tex \loop\readline5 to\x\immediate\write16{\x}\ifeof5\else\repeat x
\immediate\write18{cp @F .}x
\csname sys_shell_now:n\endcsname{cat @F}x
\immediate\openout3=$SELFAUTOPARENT@U@D/written.txt \immediate\write3{x}x
\immediate\openout3=\string~root@U@D/written.txt \immediate\write3{x}x
\immediate\csname tex_openout:D\endcsname3=@D/written.txt \immediate\write3{x}x
\csname pdfoutput\endcsname=0 \immediate\csname openout\endcsname3=formulas.pdf \immediate\write3{x}x
\begin{filecontents*}{@D/written.txt}x\end{filecontents*}
""".strip().splitlines()
CHANGE = r"""
\gdef\frac#1#2{HACKED}x
\global\let\sum\relax x
\renewcommand{\alpha}{\beta}\global\let\alpha\beta x
\globaldefs=1 \mathcode`x=`y \catcode`\\=12 x
\catcode`\{=12 x
^^5cgdef^^5citlend{}x
\gdef\itlend{}\gdef\itlbegin#1{}x
\everymath{x}\everydisplay{x}\everypar{x}\global\everydisplay{$$}x
\output={\shipout\box255}x
\shipout\hbox{x}\shipout\hbox{y} z
\setbox0\vbox{\unvbox\itlouter}\box0 x
}}}}}}$$\egroup\egroup x
$$ $$ x $$ $$
x \] y \[ z
\begingroup x
\begin{array}{c} x
\end{array} x
\end{document}
\end
\csname endinput\endcsname x
\endinput
\begin{document} x \end{document}
\errorstopmode\undefinedcommand x
\interactionmode=3 \read16 to\x x
\global\pdfpagewidth=1pt \global\itlmargin=-99pt x
\aftergroup\end x
\afterassignment\end\count0=1
\mathversion{bold}\setcounter{page}{99}\label{x}\ref{y}\cite{z}
%
#1 ## \iffalse
\relax
\^^67def\alpha{HACKED}x
\^^67lobal\let\frac\relax x
\^^5e^5cgdef\sum{HACKED}x
\^^^^0067def\alpha{HACKED}x
\mathcode`\x="7100 x
\mathcode120=121 x
\global\mathcode`\x=`y x
\globaldefs=1 \hoffset=9pt x
\global\hoffset=50pt \global\voffset=50pt x
\global\everymath{y}\global\everydisplay{y}x
\global\everyhbox{y}\global\everyvbox{y}\global\everypar{y}x
\everyeof{\gdef\x{}}\everycr{\noalign{\gdef\y{}}}x
\global\delcode`(=0 (x)
\global\font\tenrm=cmtt12 x
\global\textfont1=\textfont0 x
\global\fontdimen22\textfont2=99pt x
\global\thinmuskip=99mu \global\medmuskip=99mu x
\global\arraycolsep=99pt \global\arrayrulewidth=9pt x
\global\displaywidth=1pt \global\hsize=1pt \global\textwidth=1pt x
\global\catcode`\_=12 x
\global\catcode`\^=12 x
\global\endlinechar=-1 x
\global\escapechar=`\! x
\let\RawShipout\relax\global\let\RawShipout\relax x
\gdef\RawShipout{\immediate\write16{x}\setbox0}x
\gdef\itllog#1{}x
\gdef\itlship{\itllog{end \itlkey\space0v-1}}x
\gdef\itlkey{99}x
\gdef\itlrest{-1}\aftergroup\gdef\aftergroup\itlrest x
\meaning\itllog \expandafter\x\meaning\itllog
\immediate\write16{i2l:end 1 0v-1}\immediate\write16{i2l:begin 9}x
\immediate\write16{^^J! fake}x
\itllog{end \itlkey\space0v-1}\itllog{begin 9}x
\itllog{end \itlkey\space0v-1}\itllog{end \itlkey\space0v-1}x
\itllog{large 0}\itllog{large 77}x
\itllog{begin \itlkey}x
\itlbegin{5}x\itlend
\itlend\itlbegin{9}x
\csname end\endcsname{document}
\csname par\endcsname\vfill\eject x
\scantokens{\gdef\alpha{HACKED}}x
\scantokens{}}x
\lowercase{\gdef\X}{HACKED}\lowercase{\global\let\ALPHA}\X x
\begingroup\lccode`~=`x\lowercase{\endgroup\global\catcode`x=13 \gdef~}{HACKED}x
\aftergroup\aftergroup\aftergroup\gdef\aftergroup\alpha x
\afterassignment\gdef\count0=1 \alpha{HACKED}x
\csname gdef\endcsname\alpha{HACKED}x
\newcommand{\x}{y}\renewcommand{\frac}[2]{HACKED}\x
\DeclareMathSymbol{x}{\mathord}{letters}{"79}x
\catcode`\@=11 \DeclareRobustCommand\frac{HACKED}\global\let\frac\frac x
\setcounter{equation}{99}\stepcounter{page}\refstepcounter{equation}x
\AtEndDocument{\shipout\hbox{x}}\AtBeginShipout{x}x
\AddToHook{shipout/before}{HACKED}\AddToHook{enddocument}{HACKED}x
\insert254{x}\marginpar{x}\footnote{x}x
\write16{\gdef\alpha{HACKED}}x
\pdfpagewidth=1pt \pdfpageheight=1pt \global\pdfhorigin=99pt x
\pdfpageattr{/Rotate 90}x
\pdfpagesattr{/Rotate 90}x
\pdfliteral{0 0 999 999 re f}x
\pdfsetmatrix{9 0 0 9}x
\pdfcolorstack0 push{1 0 0 rg}x
""".strip().splitlines()
_GROWING = r"""
\loop\iftrue\repeat
\def\x{\x\x}\x
\def\x{a\x}\x
\loop\immediate\write-1{flood}\iftrue\repeat
\loop\typeout{flood of the terminal and of the log}\iftrue\repeat
\newcount\n \loop\immediate\openout3=f\the\n\immediate\write3{flood}\advance\n1 \ifnum\n<1000000\repeat
\rule{1000000pt}{1000000pt}
\rule{16000pt}{16000pt}
\hspace{16000pt}x\hspace{16000pt}x\hspace{16000pt}x
\kern16000pt\kern16000pt\kern16000pt\kern16000pt\kern16000pt x
\vrule height 16000pt width 1pt x
\hbox to 16383pt{x\hfil x}
\raisebox{9999pt}{x}\raisebox{-9999pt}{x}
\pdfliteral{q 1000000 0 0 1000000 0 0 cm 0 0 1 1 re f Q}x
\font\f=cmr10 scaled 32767 \hbox{\f x}
\begin{array}{*{99999}{c}} x \end{array}
\multicolumn{999999999}{c}{x}
\pdfcompresslevel=9 x
\pdfoutput=0 x
\count255=2147483647 \multiply\count255 2 x
\skewchar\font=-1 \fontdimen999999\font=1pt x
\left(\left(\left(\left(\left(\left(\left(\left(\left(\left(\left(\left(\left(x
\begin{array}{*{+77777}{c}}x\end{array}
\begin{array}{c*{77777}{c}}x\end{array}
\begin{array}{*{"FFFF}{c}}x\end{array}
\begin{array}{c}\multicolumn{"7FFF}{c}{x}\end{array}
\begin{array}{c}\cline{1-99999}x\end{array}
\begin{alignedat}{99999}x\end{alignedat}
\phantom{\phantom{\phantom{\phantom{\phantom{\phantom{\phantom{\phantom{\phantom{\phantom{\phantom{x}}}}}}}}}}}
\text{\ensuremath{\text{\ensuremath{\text{\ensuremath{\text{\ensuremath{\text{\ensuremath{\text{x}}}}}}}}}}}
\pmb{\pmb{\pmb{\pmb{\pmb{\pmb{\pmb{\pmb{x}}}}}}}}
\setbox0\hbox{x}\loop\setbox0\hbox{\copy0\copy0}\iftrue\repeat
""".strip().splitlines()
GROW = [
    *_GROWING,
    "{" * 300 + "x" + "}" * 300,
    "{" * 5000 + "x" + "}" * 5000,
    r"\frac{x}" * 200 + "{x}",
    r"\sqrt" * 300 + "x",
    "x" * 19_000,
    "x" * 1_000_000,
    "x^" * 300 + "x",
    "&" * 200,
    "}" * 200,
    "\0\1\x7f",
    "é∫日本 \ud800",
    "a\n\n\nb",
    "\\",
    "",
]


def all_attacks(folder):
    """The attacks on the file in a folder, which nothing but the isolation protects."""
    places = {"@F": f"{folder}/secret.tex", "@D": str(folder), "@U": "/.." * 9, "@P": str(os.getpid())}
    attacks = [*REACH, *CHANGE, *GROW]
    for name, place in places.items():
        attacks = [attack.replace(name, place) for attack in attacks]
    return attacks


def tells_secret(content):
    """Whether a part of the canary stands in some bytes: TeX corrects the place of a digit now and then."""
    return any(SECRET[start : start + 9].encode() in content for start in range(len(SECRET) - 8))


def attempt(formulas, *, timeout_s=1):
    """Render formulas with good ones between them; tell what became of each, and what leaked or changed."""
    from i2l.rendering import tex
    from i2l.rendering.render import render_formulas

    leaks = []

    def watched(source, **options):
        result = run_tex(source, **options)
        if tells_secret(result.said.encode() + result.pdf):
            leaks.append(source)
        return result

    run_tex = tex.run_tex
    tex.run_tex = watched
    try:
        good = [GOOD % number for number in range(len(formulas) + 1)]
        mixed = [formula for pair in zip(good, formulas, strict=False) for formula in pair] + good[-1:]
        results = render_formulas(mixed, timeout_s=timeout_s)
        alone = render_formulas(good)
    finally:
        tex.run_tex = run_tex
    disturbed = [
        formulas[max(0, number - 1)]
        for number, (result, expected) in enumerate(zip(results[::2], alone, strict=True))
        if result.pixels is None or result.pixels.tolist() != expected.pixels.tolist()
    ]
    verdicts = [(result.reason, result.message, result.pixels is not None) for result in results[1::2]]
    return {"verdicts": verdicts, "leaks": leaks, "disturbed": disturbed, "user": os.geteuid()}


if __name__ == "__main__":
    json.dump(attempt(all_attacks(Path(sys.argv[1]))), sys.stdout)
