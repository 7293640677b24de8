"""What the site needs besides Markdown: mathematics as MathML, files of the repository that pages link to, live pages.

MkDocs calls the functions whose names begin with `on_` (`hooks` in mkdocs.yml). Pages are written to read well in the
repository: a link such as `../src/cardan/algebra/spatial.py` leaves the folder `docs`. For the site, every file so
linked becomes a page of its own, and the link goes there. Formulas between dollars become MathML when the site is
built, so that a browser needs no script and no network to show them. The pages that `cardan textbook` writes are in the
folder `live`, and where a page of the site names that command it links there. So are those of the mechanisms in the
gallery.
"""

from __future__ import annotations

import html
import os
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

from cardan.mechanisms import CATALOGUE
from cardan.textbook.pages import PAGES, page_text

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")
FENCE = re.compile(r"^```.*?^```[ \t]*$", re.MULTILINE | re.DOTALL)
MATHS = re.compile(r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<tex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL)
LIVE = re.compile(rf"(?<!\[)`cardan textbook ({'|'.join(PAGES)})`")
GALLERY = re.compile(rf"(?<!\[)`cardan view ({'|'.join(CATALOGUE)})`")
LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".json": "json", ".urdf": "xml", ".toml": "toml"}


def site_path(path: str) -> str:
    """Where the site has a file of the repository: pages of `docs` at the top, all others below `repository`."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if (ROOT / path).is_dir():
        return f"repository/{path}/index.md"
    return f"repository/{path}" if path.endswith((".md", ".svg", ".png")) else f"repository/{path}.md"


def is_page(path: str) -> bool:
    """Whether a link from a page to this file of the repository is to a page that must be made."""
    return not path.startswith(("docs/", "../")) and (ROOT / path).exists()


def linked(path: str, text: str) -> list[str]:
    """The files of the repository that a page links to; `path` is its own place there."""
    here = posixpath.dirname(path)
    return [posixpath.normpath(posixpath.join(here, m[1])) for m in LINK.finditer(FENCE.sub("", text))]


def relinked(path: str, text: str) -> str:
    """The page with its links as the site has them."""
    here = posixpath.dirname(path)
    home = posixpath.dirname(site_path(path))

    def replace(m: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(here, m[1]))
        if target.startswith("../") or not (ROOT / target).exists():
            return m[0]
        return posixpath.relpath(site_path(target), home or ".") + (m[2] or "")

    parts, end = [], 0
    for fence in FENCE.finditer(text):
        parts += [LINK.sub(replace, text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, LINK.sub(replace, text[end:])])


def text_of(path: str) -> str:
    """A file or folder of the repository as Markdown."""
    file = ROOT / path
    if file.is_dir():
        inside = sorted(p.name for p in file.iterdir() if p.is_file() and p.suffix in LANGUAGES and p.name[0] != "_")
        return f"# {path}\n\n" + "\n".join(f"- [{name}]({posixpath.basename(path)}/{name})" for name in inside) + "\n"
    text = file.read_text(encoding="utf-8")
    if path.endswith(".md"):
        return text
    language = LANGUAGES.get(file.suffix, "text")
    return f"---\nsearch:\n  exclude: true\n---\n\n# {file.name}\n\n`{path}`\n\n````{language}\n{text}````\n"


def gallery_names() -> list[str]:
    """The mechanisms whose pages are made: all.

    For a quick build the environment variable CARDAN_GALLERY names some of them, or none.
    """
    wanted = os.environ.get("CARDAN_GALLERY")
    return [name for name in CATALOGUE if wanted is None or name in wanted.split(",")]


def gallery_page(name: str) -> str:
    """The page of a mechanism in motion, from make_gallery.py beside this file."""
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        from make_gallery import page_of
    finally:
        sys.path.remove(str(ROOT / "docs"))
    return page_of(name)


def on_config(config: Any) -> Any:
    """Put pages that the menu of mkdocs.yml does not name at its end, so that none is lost."""
    named = set(re.findall(r"[\w/.-]+\.md", str(config.nav)))
    pages = sorted(page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md"))
    more = [page for page in pages if page not in named and not page.startswith(("decisions/", "reference/"))]
    config.nav += [{"More": more}] if more else []
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add a page for each file outside `docs` that a page links to, and for those that these link to."""
    known: set[str] = set()
    pages = [f"docs/{file.src_uri}" for file in files.documentation_pages()]
    while pages:
        path = pages.pop()
        if (ROOT / path).is_dir():
            targets = [f"{path}/{name}" for name in re.findall(r"\]\([^)]*/([^)/]+)\)", text_of(path))]
        else:
            targets = linked(path, text_of(path)) if path.endswith(".md") else []
        for target in filter(is_page, targets):
            if target in known:
                continue
            known.add(target)
            pages.append(target)
            if (ROOT / target).suffix in (".svg", ".png"):
                files.append(File.generated(config, site_path(target), abs_src_path=str(ROOT / target)))
            else:
                files.append(File.generated(config, site_path(target), content=text_of(target)))
    for name in gallery_names():
        files.append(File.generated(config, f"live/{name}.html", content=gallery_page(name)))
    for source in PAGES:
        files.append(File.generated(config, f"live/{source.lower()}.html", content=page_text(source)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Let links that leave `docs` go to the pages made of what they name, and link to live pages."""
    uri = page.file.src_uri
    path = f"docs/{uri}"
    if uri.startswith("repository/"):
        path = uri.removeprefix("repository/")
        path = path.removesuffix("/index.md") if path.endswith("/index.md") else path
        if not (ROOT / path).exists():
            path = path.removesuffix(".md")
        if (ROOT / path).is_dir():
            return re.sub(r"\]\([^)]*/([^)/]+)\)", r"](\1.md)", markdown)
        if not path.endswith(".md"):
            return markdown
    home = posixpath.dirname(uri) or "."
    text = relinked(path, markdown)
    if uri == "gallery.md":
        made = gallery_names()
        text = GALLERY.sub(lambda m: f"[{m[0]}](live/{m[1]}.html)" if m[1] in made else m[0], text)
    return LIVE.sub(lambda m: f"[{m[0]}]({posixpath.relpath(f'live/{m[1].lower()}.html', home)})", text)


def on_page_content(content: str, page: Any, config: Any, files: Files) -> str:
    """Formulas as MathML."""

    def replace(m: re.Match[str]) -> str:
        tex = html.unescape(m["tex"]).strip()
        return convert(tex, display="block" if m["tag"] == "div" else "inline")

    return MATHS.sub(replace, content)
