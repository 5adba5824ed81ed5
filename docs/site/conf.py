"""Sphinx's settings of the site. build.py gathers its pages into one folder and runs it there."""

from docutils import nodes
from sphinx import addnodes
from sphinx.domains.cpp import CPPDomain


project = "Nitinol"
author = "the authors of Nitinol"
copyright = "the authors of Nitinol"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "Nitinol"
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_domain_indices = False
# Results of a search show where a word stands; the texts are in the index that the pages load.
html_show_search_summary = False
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
highlight_language = "text"
add_module_names = False
python_use_unqualified_type_names = True
toc_object_entries = False
maximum_signature_line_length = 66
cpp_maximum_signature_line_length = 66
python_maximum_signature_line_length = 66
nitpicky = False
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
pygments_style = "friendly"
pygments_dark_style = "monokai"
# Nothing comes from elsewhere: the site is read from disk, without a network.
html_theme_options = {"source_repository": "", "footer_icons": []}

# In a signature these are Python's, of which two are dtypes' names, too.
BUILTINS = {"bool", "int", "float", "str", "slice", "e"}


def without_builtins(app, doctree):
    for node in list(doctree.findall(addnodes.pending_xref)):
        if node["refdomain"] == "py" and node["reftarget"] in BUILTINS:
            node.replace_self(nodes.Text(node["reftarget"]))


class Cpp(CPPDomain):
    """Without parameters, which a search would show beside each function."""

    def get_objects(self):
        kinds = ("functionParam", "templateParam")
        return (one for one in super().get_objects() if one[2] not in kinds)


def setup(app):
    app.add_domain(Cpp, override=True)
    app.connect("doctree-read", without_builtins)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
