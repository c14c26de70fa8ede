"""Requests that no client would send: raw bytes, junk paths, methods, headers and parameters."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fuzz import promises, shapes
from tests.fuzz.budget import budget
from tests.fuzz.driver import Driver

MEDIA_TYPES = [
    "application/json",
    "application/yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/vnd.kubernetes.protobuf",
    "text/plain",
    "",
    "application/json; charset=utf-16",
    ";;;",
    "json",
]
PATHS = [
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/configmaps/a",
    "/api/v1/namespaces/default/secrets/a",
    "/api/v1/namespaces/default/serviceaccounts/default/token",
    "/api/v1/namespaces",
    "/apis/apps/v1/namespaces/default/deployments/a/scale",
    "/apis/apps/v1/namespaces/default/deployments/a/status",
    "/apis/fairway.dev/v1alpha1/queues",
    "/apis/fairway.dev/v1alpha1/queues/a/status",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings/a",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
    "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews",
    "/apis/authentication.k8s.io/v1/tokenreviews",
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    "/openapi/v2",
    "/openapi/v3",
    "/version",
    "/",
]
METHODS = st.sampled_from(
    ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT", "BREW", "get"]
)
methods_and_paths = (METHODS, st.sampled_from(PATHS))

# Bytes close to JSON, YAML or protobuf, as a broken client or a hostile one would send them.
ODD_BODIES = [
    b"",
    b" ",
    b"null",
    b"[]",
    b"{}",
    b"{",
    b'"a"',
    b"\xff\xfe",
    b"\xef\xbb\xbf{}",
    b"NaN",
    b'{"a":NaN}',
    b'{"a":1e400}',
    b'{"a":-Infinity}',
    b'{"kind":"\\ud800"}',
    b'{"metadata":{"name":"\\ud800"}}',
    b'{"\\ud800":1}',
    b'{"metadata":{"labels":{"\\udfff":"\xed\xa0\x80"}}}',
    b'{"a":1,"a":2}',
    b'{"metadata":{"name":"a"},"metadata":{"name":"b"}}',
    b'{"":{"":{"":""}}}',
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"[" * 900 + b"]" * 900,
    b'{"a":' * 900 + b"1" + b"}" * 900,
    b'{"metadata":' * 400 + b"1" + b"}" * 400,
    b"- " * 5_000,
    b"a: &a [*a]",
    b"a: &a [1,1,1,1]\nb: &b [*a,*a,*a,*a]\nc: [*b,*b,*b,*b]",
    b"? [a]\n: 1",
    b"!!python/object/apply:os.system ['true']",
    b"%YAML 9.9\n---\na: 1",
    b"---\na: 1\n---\nb: 2",
    b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: .nan}",
    b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: 2026-01-01}",
    b"apiVersion: v1\nkind: List\nitems: [1]",
    b"k8s\x00",
    b"k8s\x00\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"k8s\x00\x0a\x0d\x0a\x02v1\x12\x09ConfigMap\x12\x02\x0a\xff",
    b"\x00" * 100,
    b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":'
    + b"9" * 5_000
    + b"}}",
]
bodies = st.one_of(
    st.sampled_from(ODD_BODIES),
    st.binary(max_size=60),
    st.binary(max_size=60).map(lambda tail: b"k8s\x00" + tail),
    st.text(alphabet="{}[]:,\"'0123456789.eE-+&*!|>%@`#? \n\tabn\\u", max_size=60).map(str.encode),
    shapes.values.map(msgspec.json.encode),
    shapes.deep_values.map(msgspec.json.encode),
)


@budget(200)
@given(st.tuples(*methods_and_paths), bodies, st.sampled_from(MEDIA_TYPES))
def test_any_bytes_in_any_media_type_get_a_plain_answer(
    driver: Driver, target: tuple[str, str], body: bytes, kind: str
) -> None:
    driver.send(*target, body, kind=kind, query={"fieldManager": "fuzz"})


@pytest.mark.parametrize("kind", MEDIA_TYPES, ids=lambda kind: kind or "no media type")
def test_every_odd_body_is_refused_or_kept_whole(driver: Driver, kind: str) -> None:
    query = {"fieldManager": "fuzz"}
    for body in ODD_BODIES:
        for path in (PATHS[0], PATHS[9], PATHS[7]):
            driver.send("POST", path, body, kind=kind)
        for path in (PATHS[1], PATHS[5], PATHS[8]):
            driver.send("PATCH", path, body, kind=kind, query=query)
            driver.send("PUT", path, body, kind=kind)
            driver.send("DELETE", path, body, kind=kind)
    promises.check_store(driver)


SEGMENTS = st.one_of(
    st.sampled_from(
        [
            "api",
            "apis",
            "v1",
            "namespaces",
            "default",
            "configmaps",
            "pods",
            "watch",
            "status",
            "scale",
            "token",
            "apps",
            "fairway.dev",
            "v1alpha1",
            "queues",
            "openapi",
            "v2",
            "v3",
            "healthz",
            "readyz",
            "livez",
            "metrics",
            "version",
            "a",
            "proxy",
            "exec",
            "log",
            "*",
        ]
    ),
    shapes.texts,
)


@budget(200)
@given(METHODS, st.lists(SEGMENTS, max_size=9), st.booleans())
@example("GET", ["openapi", "v3", "api"], False)
@example("GET", ["openapi", "v3", "apis", "apps"], False)
def test_a_path_of_any_segments_gets_a_plain_answer(
    driver: Driver, method: str, segments: list[str], ends: bool
) -> None:
    driver.send(method, "/" + "/".join(segments) + ("/" if ends else ""))


PARAMETERS = (
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "labelSelector",
    "fieldSelector",
    "timeoutSeconds",
    "fieldValidation",
    "dryRun",
    "watch",
    "allowWatchBookmarks",
    "sendInitialEvents",
    "force",
    "fieldManager",
    "propagationPolicy",
    "gracePeriodSeconds",
    "orphanDependents",
    "includeObject",
    "pretty",
    "timeout",
)
SAID = st.one_of(
    shapes.texts,
    st.sampled_from(
        [
            "1",
            "0",
            "true",
            "All",
            "Exact",
            "NotOlderThan",
            "Strict",
            "Orphan",
            "Foreground",
            "a=b",
            "a in (b,c)",
            "a notin (",
            "!a",
            "a,,b",
            "a>1",
            "a=b=c",
            "metadata.name=a",
            "spec.nodeName=x",
            "status.phase!=Running",
            "metadata.name!=",
            "=",
            "in (a)",
            "x in ()",
            "WzEsImEiLCJiIl0",
            "eyJ2IjoxfQ",
            "W10",
            "bnVsbA",
            "WzFd",
            "WzEsIlx1ZDgwMCIsImIiXQ",
            "18446744073709551616",
            "999999999999999999",
            "0009",
            "+1",
            "1e3",
            "\uff11\uff12",
            "None",
        ]
    ),
)


@budget(200)
@given(
    st.tuples(*methods_and_paths),
    st.dictionaries(st.sampled_from(PARAMETERS), SAID, max_size=5),
    st.sampled_from([b"", b"{}", b'{"metadata":{"name":"a"}}']),
)
def test_parameters_that_say_anything_get_a_plain_answer(
    driver: Driver, target: tuple[str, str], query: dict[str, str], body: bytes
) -> None:
    try:
        driver.send(*target, body, query=query, kind="application/merge-patch+json")
    finally:
        driver.send("DELETE", "/api/v1/namespaces/default/configmaps/a")


ACCEPTS = [
    "*/*",
    promises.TABLE,
    promises.METADATA,
    "application/json;as=Table;v=v9;g=x",
    "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io",
    "application/vnd.kubernetes.protobuf",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "text/html",
    ";q=1,,;",
    "application/json;as",
    "a/b;c=d;c=e",
]
HEADERS = st.one_of(
    st.tuples(st.just("accept"), st.one_of(st.sampled_from(ACCEPTS), shapes.texts)),
    st.tuples(st.just("content-type"), st.one_of(st.sampled_from(MEDIA_TYPES), shapes.texts)),
    st.tuples(
        st.just("authorization"),
        st.one_of(
            st.sampled_from(["Bearer", "Bearer ", "Basic YTpi", "bearer x", "Bearer a.b.c"]),
            st.sampled_from(["Bearer eyJhbGciOiJub25lIn0.e30.", "Bearer eyJ.eyJ.eyJ"]),
            shapes.texts,
        ),
    ),
    st.tuples(
        st.sampled_from(
            [
                "impersonate-user",
                "impersonate-group",
                "impersonate-uid",
                "Impersonate-Extra-%zz",
                "impersonate-extra-",
                "impersonate-",
                "impersonate-extra-a%2Fb",
                "user-agent",
                "audit-id",
                "x-forwarded-for",
                "upgrade",
                "expect",
                "range",
                "if-none-match",
            ]
        ),
        st.one_of(st.sampled_from(["system:masters", "system:serviceaccount:a:b"]), shapes.texts),
    ),
)


@budget(200)
@given(st.tuples(*methods_and_paths), st.lists(HEADERS, max_size=4))
def test_headers_that_say_anything_get_a_plain_answer(
    driver: Driver, target: tuple[str, str], headers: list[tuple[str, str]]
) -> None:
    driver.send(*target, b'{"metadata":{"name":"h"}}', headers=tuple(headers))


deletions = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(["DeleteOptions", "Burn", 1]),
        "apiVersion": st.sampled_from(["v1", "meta.k8s.io/v1", 1]),
        "gracePeriodSeconds": shapes.scalars,
        "propagationPolicy": st.one_of(
            st.sampled_from(["Orphan", "Foreground", "Background"]), shapes.values
        ),
        "orphanDependents": shapes.scalars,
        "dryRun": st.one_of(st.just(["All"]), shapes.values),
        "preconditions": st.one_of(
            st.fixed_dictionaries(
                {}, optional={"uid": shapes.values, "resourceVersion": shapes.values}
            ),
            shapes.values,
        ),
    },
)


@budget(200)
@given(st.one_of(deletions, shapes.values), st.sampled_from(["", "/a"]))
def test_delete_options_that_say_anything_get_a_plain_answer(
    driver: Driver, options: object, name: str
) -> None:
    home = "/api/v1/namespaces/default/configmaps"
    driver.send("POST", home, {"metadata": {"name": "a"}})
    driver.send("DELETE", home + name, options)
    driver.send("DELETE", home + "/a")


reviews = st.fixed_dictionaries(
    {},
    optional={
        "kind": shapes.scalars,
        "apiVersion": shapes.scalars,
        "metadata": shapes.values,
        "status": shapes.values,
        "spec": st.one_of(
            shapes.values,
            st.fixed_dictionaries(
                {},
                optional={
                    "resourceAttributes": st.one_of(
                        shapes.values,
                        st.dictionaries(
                            st.sampled_from(["verb", "group", "resource", "namespace", "name"]),
                            shapes.scalars,
                        ),
                    ),
                    "nonResourceAttributes": shapes.values,
                    "user": shapes.scalars,
                    "groups": shapes.values,
                    "namespace": shapes.scalars,
                    "token": shapes.scalars,
                    "audiences": shapes.values,
                    "expirationSeconds": shapes.scalars,
                    "boundObjectRef": shapes.values,
                    "extra": shapes.values,
                },
            ),
        ),
    },
)


@budget(200)
@given(st.sampled_from([PATHS[3], *PATHS[12:18]]), reviews)
def test_reviews_that_say_anything_get_a_plain_answer(
    driver: Driver, path: str, review: dict[str, object]
) -> None:
    driver.send("POST", path, review)


scales = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(["Scale", "Burn", 1, None]),
        "apiVersion": shapes.scalars,
        "metadata": st.one_of(
            shapes.values,
            st.dictionaries(st.sampled_from(["name", "resourceVersion", "uid"]), shapes.values),
        ),
        "spec": st.one_of(shapes.values, st.fixed_dictionaries({"replicas": shapes.scalars})),
        "status": shapes.values,
    },
)


@budget(200)
@given(scales, st.sampled_from(["PUT", "PATCH"]), st.sampled_from(MEDIA_TYPES[:6]))
def test_scales_that_say_anything_leave_a_right_deployment(
    driver: Driver, scale: dict[str, object], method: str, kind: str
) -> None:
    labels = {"app": "a"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": pod}
    home = "/apis/apps/v1/namespaces/default/deployments"
    driver.send("POST", home, {"metadata": {"name": "a"}, "spec": spec})
    query = {"fieldManager": "fuzz"} if method == "PATCH" else {}
    driver.send(method, f"{home}/a/scale", scale, kind=kind, query=query)
    kept = driver.json("GET", f"{home}/a")
    assert 0 <= kept["spec"]["replicas"] < 2**31
