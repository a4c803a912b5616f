"""Pages in Chinese say so to browsers, screen readers and search engines."""

CHINESE = ("README.zh", "docs/zh/")


def find_language(page):
    return "zh-CN" if page.startswith(CHINESE) else "en"


def set_language(app, page, template, context, doctree):
    context["language"] = find_language(page)


def setup(app):
    app.connect("html-page-context", set_language)
    return {"parallel_read_safe": True}
