"""What `make site` runs: the page of `i2l serve` as a folder of files, reading in the browser.

    python -m recipes.site [OUT]        # OUT is build/site if not given

The page, the networks and the package's Python are those of the wheel. Pyodide and onnxruntime-web come from
recipes/site/node_modules, where `npm ci` puts the versions of package-lock.json. What is large is packed
here, so that any server will do; docs/site.md says more.
"""

import gzip
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from PIL import Image, ImageDraw

from i2l.formats.convert import EVERY_FORMAT
from i2l.inference.model_folder import find_model
from i2l.web.answers import list_formats
from recipes.site_networks import optimize_network, write_in_planes
from recipes.site_python import prevent_guesses

ROOT = Path(__file__).parents[1]
RECIPE = ROOT / "recipes" / "site"
MODULES = RECIPE / "node_modules"
SOURCE = ROOT / "src"
WEB = SOURCE / "i2l" / "web"

PYODIDE: Final = MODULES / "pyodide" / "pyodide.asm.wasm"
PACKED: Final = {  # by the name in the folder reader/: where the file is
    "ort-wasm-simd-threaded.wasm": MODULES / "onnxruntime-web" / "dist" / "ort-wasm-simd-threaded.wasm",
}
PLAIN: Final = (
    MODULES / "pyodide" / "pyodide.mjs",
    MODULES / "pyodide" / "pyodide.asm.mjs",
    MODULES / "onnxruntime-web" / "dist" / "ort-wasm-simd-threaded.mjs",
    *(
        RECIPE / "browser" / name
        for name in ("kernels.js", "loops.js", "networks.js", "reader.js", "unpack.js", "worker.js")
    ),
)
# What the page lets a person choose, of the server and here: browsers decode no TIFF, and draw no PDF for us.
SERVER_ACCEPTS: Final = 'accept="image/*,.tif,.tiff,.avif,.pdf,application/pdf"'
ACCEPTS: Final = 'accept="image/*,.avif"'
DRAWN: Final = ("png", "svg")  # formats that need a typesetter, which browsers have not
LEFT_OUT: Final = ("docs.html", "docs.js", "api.js")  # what only the server has

# What the server says in headers; `frame-ancestors` counts only there. WebAssembly is what reads.
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self' 'wasm-unsafe-eval'",
        "worker-src 'self'",
        "manifest-src 'self'",
        "style-src 'self'",
        "font-src 'self'",
        "img-src 'self' blob: data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types i2l",
    )
)
HEAD: Final = (
    f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
    '<meta name="referrer" content="no-referrer">\n'
    '<script src="api.js" type="module"></script>\n'
    '<meta name="theme-color" content="#2f62ad">\n'
    '<link rel="manifest" href="manifest.webmanifest">\n'
    '<link rel="apple-touch-icon" href="icon-192.png">\n'
)
MANIFEST: Final = {
    "id": "./",
    "name": "I2L: picture of a formula in, LaTeX out",
    "short_name": "I2L",
    "description": "Reads pictures of formulas and writes their LaTeX, in the browser alone.",
    "start_url": "./",
    "scope": "./",
    "display": "standalone",
    "background_color": "#f4f6f9",
    "theme_color": "#2f62ad",
    "icons": [
        {"src": "icon.svg", "sizes": "any", "type": "image/svg+xml"},
        *(
            {"src": f"icon-{size}.png", "sizes": f"{size}x{size}", "type": "image/png", "purpose": purpose}
            for size in (192, 512)
            for purpose in ("any", "maskable")
        ),
    ],
    "share_target": {
        "action": "share",
        "method": "POST",
        "enctype": "multipart/form-data",
        "params": {"files": [{"name": "picture", "accept": ["image/*"]}]},
    },
}


def pack(content: bytes) -> bytes:
    """Pack a file, the same bytes each time. Level 9 takes three times as long as 7, for half a percent."""
    return gzip.compress(content, 7, mtime=0)


def make_snapshot() -> bytes:
    """Save the memory of a Python that has imported everything; see snapshot.mjs."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "snapshot.bin"
        arguments = [SOURCE, ROOT / "examples" / "labels.tsv", out]
        subprocess.run(["node", RECIPE / "snapshot.mjs", *arguments], check=True)
        return out.read_bytes()


def make_icon(size_px: int) -> bytes:
    """Draw icon.svg as PNG: four times as large first, for smooth edges."""
    scale = 4 * size_px / 32
    image = Image.new("RGB", (4 * size_px,) * 2, "#2f62ad")
    draw = ImageDraw.Draw(image)
    # Smaller than in icon.svg, since a telephone may cut a circle out of it.
    places = [
        (16 + 0.8 * (x - 16), 16 + 0.8 * (y - 16))
        for x, y in ((22, 9), (10, 9), (17, 16), (10, 23), (22, 23))
    ]
    points = [(x * scale, y * scale) for x, y in places]
    width = 0.8 * 2.6 * scale
    draw.line(points, fill="white", width=round(width), joint="curve")
    for x, y in points:
        draw.ellipse((x - width / 2, y - width / 2, x + width / 2, y + width / 2), fill="white")
    file = io.BytesIO()
    image.resize((size_px, size_px), Image.Resampling.LANCZOS).save(file, "PNG", optimize=True)
    return file.getvalue()


def empty_library() -> bytes:
    """Make the library that Pyodide asks for; all that is needed of it is in the snapshot."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w"):
        pass
    return file.getvalue()


def list_examples() -> list[dict[str, str]]:
    """List the pictures to try, as the server does."""
    return [
        {"name": path.stem.partition("-")[2].replace("-", " ").capitalize(), "url": f"examples/{path.name}"}
        for path in sorted((WEB / "examples").glob("*.png"))
    ]


def collect() -> dict[str, bytes]:
    """Make the files of the site but the service worker, by their names."""
    files = {
        path.relative_to(WEB / "page").as_posix(): path.read_bytes()
        for path in sorted((WEB / "page").rglob("*"))
        if path.is_file() and path.name not in LEFT_OUT
    }
    page = files.pop("index.html").decode()
    page = page.replace('<meta name="color-scheme"', f'{HEAD}<meta name="color-scheme"', 1)
    files[""] = page.replace(SERVER_ACCEPTS, ACCEPTS, 1).encode()
    files["api.js"] = (RECIPE / "browser" / "api.js").read_bytes()
    files |= {f"examples/{path.name}": path.read_bytes() for path in sorted((WEB / "examples").glob("*.png"))}
    for name, content in {
        "formats.json": list_formats([name for name in EVERY_FORMAT if name not in DRAWN]),
        "examples.json": list_examples(),
        "manifest.webmanifest": MANIFEST,
    }.items():
        files[name] = json.dumps(content, ensure_ascii=False).encode()
    files |= {f"icon-{size}.png": make_icon(size) for size in (192, 512)}
    files |= {f"reader/{path.name}": path.read_bytes() for path in PLAIN}
    packed = {name: path.read_bytes() for name, path in PACKED.items()}
    packed |= {
        path.name: write_in_planes(optimize_network(path)) for path in sorted(find_model(None).glob("*.onnx"))
    }
    packed[PYODIDE.name] = prevent_guesses(PYODIDE.read_bytes())
    packed["snapshot.bin"] = make_snapshot()
    files |= {f"reader/{name}.gz": pack(content) for name, content in packed.items()}
    files["reader/library.zip"] = empty_library()
    return files


def write_site(out: Path) -> None:
    """Write the folder anew, and say what it weighs."""
    files = collect()
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    worker = (RECIPE / "browser" / "service-worker.js").read_text(encoding="utf-8")
    worker = worker.replace("@VERSION@", digest.hexdigest()[:12])
    files["service-worker.js"] = worker.replace('"@FILES@"', json.dumps(sorted(files))[1:-1]).encode()
    shutil.rmtree(out, ignore_errors=True)
    for name, content in files.items():
        path = out / (name or "index.html")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    plain = sum(map(len, files.values()))
    served = sum(
        len(content) if name.endswith((".gz", ".png", ".woff2")) else len(pack(content))
        for name, content in files.items()
    )
    print(
        f"{out}: {len(files)} files, {plain / 1e6:.1f} MB, {served / 1e6:.1f} MB where the server packs text"
    )


if __name__ == "__main__":
    write_site(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site")
