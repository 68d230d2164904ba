import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, bytes | str], Path]:
    """Writes a file, text as UTF-8 without touching its line ends."""

    def write_file(name: str, content: bytes | str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


@pytest.fixture
def pdf_bytes() -> Callable[..., bytes]:
    """Builds a PDF with one text line a page; an empty line leaves the page blank."""

    def build(*pages: str) -> bytes:
        streams = [f"BT /F1 12 Tf 50 700 Td ({line}) Tj ET" if line else "" for line in pages]
        kids = " ".join(f"{4 + 2 * at} 0 R" for at in range(len(pages)))
        objects = [
            "<< /Type /Catalog /Pages 2 0 R >>",
            f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] >>",
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        ]
        for at, stream in enumerate(streams):
            resources = "/MediaBox [0 0 600 800] /Resources << /Font << /F1 3 0 R >> >>"
            objects.append(f"<< /Type /Page /Parent 2 0 R {resources} /Contents {5 + 2 * at} 0 R >>")
            objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        body, offsets = b"%PDF-1.4\n", []
        for number, content in enumerate(objects, start=1):
            offsets.append(len(body))
            body += f"{number} 0 obj\n{content}\nendobj\n".encode()
        table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
        trailer = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
        return body + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{trailer}".encode()

    return build


@pytest.fixture
def docx_bytes() -> Callable[[str], bytes]:
    """Builds a Word document from the XML of its body; the prefix is `w`."""

    def build(body: str) -> bytes:
        space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
        level = '<w:pPr><w:outlineLvl w:val="0"/></w:pPr>'
        style = f'<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/>{level}</w:style>'
        parts = {
            "word/document.xml": f"<w:document {space}><w:body>{body}</w:body></w:document>",
            "word/styles.xml": f"<w:styles {space}>{style}</w:styles>",
        }
        return archive(parts)

    return build


def archive(parts: dict[str, str]) -> bytes:
    """A zip archive with these files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in parts.items():
            opened.writestr(name, content)
    return out.getvalue()
