"""The documentation site: `make docs`.

The source folder is the repository, so that a link between two Markdown files leads to the same
file here and on a code host. `docs/index.rst` has the tables of contents.
"""

import os
import sys
from pathlib import Path

import keras_bert_suite

sys.path.insert(0, str(Path(__file__).parent))

project = "keras-bert-suite"
author = copyright = "The keras-bert-suite authors"
version = release = keras_bert_suite.__version__
language = "en"

root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "examples/*.ipynb",
    "examples/README.md",
    "examples/*/README.md",
    "benchmarks/results/*.md",
    "*.md",
    "saved_models/README.md",
]
# `docs/README.md` is in `docs/index.rst`.
# Comparisons of two revisions are for authors of the package.
exclude_patterns = [
    "docs/README.md",
    "docs/site",
    "benchmarks/results/revisions.md",
    "**/.*",
    "build",
    "**/site-packages",
]

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "appendices",
    "bigrams",
    "docstrings",
    "inline_code",
    "languages",
    "links",
    "number_columns",
    "rooms",
]

# The notebooks have the outputs of a run.
nb_execution_mode = "off"
nb_ipywidgets_js = {}  # No script of another host.
nb_merge_streams = True
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
copybutton_exclude = ".linenos, .gp, .go"

# === Docstrings ===
autosummary_generate = False
autodoc_inherit_docstrings = False
autodoc_class_signature = "mixed"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
maximum_signature_line_length = 70
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Units", "params_style"), ("Modes", "params_style")]
napoleon_use_ivar = True
default_role = "code"
toc_object_entries_show_parents = "hide"

# === Pages ===
html_theme = "furo"
html_title = "keras-bert-suite"
html_static_path = ["static"]
html_css_files = ["site.css"]
templates_path = ["templates"]
# The first page lies in a folder.
html_additional_pages = {"index": "to_first_page.html", "404": "not_found.html"}
# The path of the site on its host, which the page of a wrong address needs.
html_context = {"site_root": os.environ.get("DOCS_ROOT", "/")}
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
