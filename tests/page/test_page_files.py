"""How the page's files are served: to everybody, with a strict policy, and kept by browsers."""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping

import pytest

from fairway.page import built_files
from fairway.server.documents.page import Page
from fairway.server.wire.exchange import Request, Response

FILES = {"index.html": b"<p>hello</p>", "assets/code-1a2b.js": b"run()" * 100}
BROWSER = ("Accept", "text/html,application/xhtml+xml")


def ask(path: str, *headers: tuple[str, str], method: str = "GET") -> Response | None:
    return Page(FILES).answer(Request(method=method, path=path, headers=headers))


def asked(path: str, *headers: tuple[str, str], method: str = "GET") -> Response:
    found = ask(path, *headers, method=method)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("path", "headers", "method"),
    [
        pytest.param("/", (("Accept", "application/json"),), "GET", id="a program at the door"),
        pytest.param("/", (), "GET", id="somebody who says nothing of what they want"),
        pytest.param("/", (BROWSER,), "POST", id="a write"),
        pytest.param("/apis", (BROWSER,), "GET", id="a person who looks at the API"),
        pytest.param("/pages", (BROWSER,), "GET", id="a path that only begins alike"),
    ],
)
def test_what_is_not_for_the_page_is_left_to_the_api(
    path: str, headers: tuple[tuple[str, str], ...], method: str
) -> None:
    assert ask(path, *headers, method=method) is None


def test_a_browser_at_the_door_is_led_to_the_page() -> None:
    found = asked("/", BROWSER)
    assert (found.status, found.headers["Location"]) == (302, "/page/")


def test_the_policy_allows_what_the_hub_serves_and_nothing_else() -> None:
    policy = asked("/page/").headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert not re.search(r"https?:|\*", policy)


def test_assets_are_kept_for_good_and_the_document_is_asked_for_each_time() -> None:
    assert "immutable" in asked("/page/assets/code-1a2b.js").headers["Cache-Control"]
    assert asked("/page/").headers["Cache-Control"] == "no-cache"


def test_a_browser_that_has_the_document_is_not_sent_it_again() -> None:
    etag = asked("/page/").headers["ETag"]
    found = asked("/page/", ("If-None-Match", etag))
    assert (found.status, found.body) == (304, b"")


def test_code_travels_packed_where_the_browser_can_unpack_it() -> None:
    found = asked("/page/assets/code-1a2b.js", ("Accept-Encoding", "gzip, br"))
    assert found.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(found.body) == FILES["assets/code-1a2b.js"]


@pytest.mark.parametrize("path", ["/page/none.js", "/page/../index.html", "/page/assets/"])
def test_there_is_nothing_but_the_files(path: str) -> None:
    assert asked(path).status == 404


def test_the_built_page_is_in_the_package_and_needs_no_other_host() -> None:
    files = built_files()
    document = files["index.html"].decode()
    assert "<style" not in document
    assert not re.search(r"<script(?![^>]*src=)", document)
    assert not re.search(r"""(?:src|href)="(?!/page/)""", document)
    for name in re.findall(r"""(?:src|href)="/page/([^"]+)""", document):
        assert name in files


def needed_for(view: str, files: Mapping[str, bytes]) -> set[str]:
    """What a browser fetches until it can show a view: all that the document names, and the
    view's own part with what the bundler says goes with it."""
    named = set(re.findall(r"""(?:src|href)="/page/([^"]+)""", files["index.html"].decode()))
    (entry,) = (name for name in named if name.startswith("assets/index-") and name[-3:] == ".js")
    code = files[entry].decode()
    listed = re.findall(r'"(assets/[^"]+)"', code.partition("=>i.map")[0])
    found = re.search(rf"import\(.\./{view}-[^)]+\),__vite__mapDeps\(\[([\d,]+)\]\)", code)
    assert found is not None, f"{view} is no part by itself"
    return {"index.html", *named, *(listed[int(at)] for at in found[1].split(","))}


def test_every_part_of_the_built_page_can_be_kept_for_good() -> None:
    files = built_files()
    for name in files.keys() - {"index.html", "icon.svg"}:
        assert re.fullmatch(r"assets/\w+-[\w-]{8}\.(js|css)", name), name
    parts = {match for text in files.values() for match in re.findall(rb'"(assets/[^"]+)"', text)}
    assert {part.decode() for part in parts} <= files.keys()


def test_signing_in_and_the_first_view_need_a_part_of_the_page() -> None:
    files = built_files()
    size = {name: len(gzip.compress(content, mtime=0)) for name, content in files.items()}
    for view in ("Fleet", "Workloads"):
        assert sum(size[name] for name in needed_for(view, files)) < 0.6 * sum(size.values())
