"""The site's pages: the Markdown files of the repository, as they are, and what they show and link to.

MkDocs calls these functions: `hooks` in mkdocs.yml. Run by the Python of `.venv-site`.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[3]
_LANGUAGE = re.compile(r"^(```\w+)[ ,].*$", re.MULTILINE)
_ROW = re.compile(r"^\|.*$", re.MULTILINE)
_CODE = re.compile(r"`[^`\n]+`")
_BLOCK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[([^]]+)\]\(((?!https?:|mailto:)[^)#\s]+)(?:#[^)]*)?\)")
_LOADED = re.compile(
    r'<(?:script|img|iframe|link(?! rel="(?:canonical|next|prev)"))\b[^>]*\b(?:src|href)="(?:https?:)?//[^"]*"'
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds all pages, and the pictures and files that they name."""
    pages = _tracked("*.md", ":!.github")
    named = {path for page in pages for path in _named_files(page)}
    for path in sorted({*pages, *named}):
        files.append(File(path, str(ROOT), config.site_dir, config.use_directory_urls))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Says in Python-Markdown's form what GitHub understands otherwise. Folders are named, not linked."""
    markdown = _LANGUAGE.sub(r"\1", markdown)
    markdown = _ROW.sub(lambda row: _CODE.sub(lambda code: code[0].replace(r"\|", "|"), row[0]), markdown)
    folder = (ROOT / page.file.src_uri).parent
    return _LINK.sub(lambda link: link[1] if (folder / link[2]).is_dir() else link[0], markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Refuses a page that would load something from another host. Writes the index of the search for disk.js."""
    index = Path(config.site_dir, "search", "search_index.json")
    index.with_suffix(".js").write_text(f"var __index = {index.read_text(encoding='utf-8')}", encoding="utf-8")
    for path in Path(config.site_dir).rglob("*.html"):
        if found := _LOADED.search(path.read_text(encoding="utf-8")):
            raise PluginError(f"{path} loads something from another host: {found[0]}")


def _tracked(*patterns: str) -> list[str]:
    command = ["git", "-C", str(ROOT), "ls-files", *patterns]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def _named_files(page: str) -> Iterator[str]:
    """The files of the repository that *page* shows or links to, without other pages."""
    text = _BLOCK.sub("", (ROOT / page).read_text(encoding="utf-8"))
    for _, link in _LINK.findall(text):
        path = ((ROOT / page).parent / link).resolve()
        if path.is_file() and path.suffix != ".md":
            yield str(path.relative_to(ROOT))
