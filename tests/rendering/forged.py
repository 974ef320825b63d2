"""PDFs by hand, as a formula might hand them in instead of its page."""


def make_pdf(objects):
    """A file of objects, the first of which is the catalog."""
    body = b"%PDF-1.4\n"
    places = []
    for number, content in enumerate(objects, start=1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    tail = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(body))
    return body + head + table + tail


def nested_forms(levels, *, width=10):
    """A page that draws a form, which draws the next one ``width`` times, and so on."""
    form = b"/Type /XObject /Subtype /Form /BBox [0 0 99 99]"
    use = b"/Resources << /XObject << /F %d 0 R >> >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /Contents 4 0 R %s >>" % (use % 5),
        _stream(b"", b"/F Do"),
    ]
    for level in range(levels):
        objects.append(_stream(form + use % (6 + level), b"/F Do " * width))
    return make_pdf([*objects, _stream(form, b"9 9 9 9 re f")])


def _stream(entries, content):
    return b"<< %s /Length %d >>\nstream\n%s\nendstream" % (entries, len(content), content)
