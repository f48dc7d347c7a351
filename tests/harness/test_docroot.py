"""The files a load experiment asks for."""

from quest.measure import docroot
from quest.spec.model import Docroot


def test_names_of_files_are_expanded() -> None:
    names = docroot.file_names(Docroot({"a/{08..10}/{0..1}.html": 5, "x.html": 1}))
    assert names == [*(f"a/{a}/{b}.html" for a in ("08", "09", "10") for b in "01"), "x.html"]
    assert len(docroot.file_content("a", 12345)) == 12345
    assert docroot.file_content("a", 100) != docroot.file_content("b", 100)
