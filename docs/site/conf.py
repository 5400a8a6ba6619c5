"""Sphinx's settings for the documentation site, which `make docs` writes to build/site/ (tools/site.sh).

Pages are those of docs/ and a few from the root, which also read well on a forge. Links that leave these pages become
links to what the site has instead: see adapt().
"""

import os
import posixpath
import re

ROOT = os.environ["TARN_SOURCE_DIR"]
# Pages from the root of the repository, and what the site calls them.
ROOT_PAGES = {"README": "index", "CONTRIBUTING": "CONTRIBUTING", "SECURITY": "SECURITY", "NEWS": "NEWS"}
# What the site has in another form.
PLACES = {
    "include/tarn.h": "api/tarn_8h.html",
    "include/tarn_graph.h": "api/tarn__graph_8h.html",
    "build/explorer/tarn-explorer.html": "explorer/tarn-explorer.html",
}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
CODE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)

project = html_title = "tarn"
extensions = ["myst_parser", "sphinx_copybutton"]
root_doc = "index"
myst_heading_anchors = 3
html_theme = "furo"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#2b6777", "color-brand-content": "#2b6777"},
    "dark_css_variables": {"color-brand-primary": "#7fc3d4", "color-brand-content": "#7fc3d4"},
}
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False


def adapt(app, page, source):
    """Links to the site's pages and pictures; others that the repository has become plain text."""
    folder = "" if page in ROOT_PAGES.values() else "docs/site" if page == "api" else "docs"

    def replace(match):
        image, text, path, anchor = match[1], match[2], match[3], match[4] or ""
        if not path or ":" in path:
            return match[0]
        text = LINK.sub(replace, text)
        path = posixpath.normpath(posixpath.join(folder, path))
        if path.startswith("build/") and not os.path.exists(os.path.join(ROOT, path)):
            return f"[{text}](explorer.md)"  # not built: the page that says how
        if path in PLACES:
            return f'<a href="{PLACES[path]}{anchor}">{text}</a>'
        stem = ROOT_PAGES.get(path[:-3], path[:-3].removeprefix("docs/"))
        if path.endswith(".md") and stem in app.env.found_docs:
            return f"[{text}]({stem}.md{anchor})"
        if not os.path.exists(os.path.join(ROOT, path)):
            raise FileNotFoundError(f"{page}: there is no {path}")
        return f"![{text}]({path.removeprefix('docs/')})" if image else text

    parts = CODE.split(source[0])
    source[0] = "".join(part if part.startswith("```") else LINK.sub(replace, part) for part in parts)


def setup(app):
    app.connect("source-read", adapt)
