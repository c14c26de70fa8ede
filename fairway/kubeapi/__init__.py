"""A thin client of Kubernetes API servers, for the hub's store and for agents.

It knows HTTP and the conventions of the API; it knows no kind, no controller and no store. Objects
pass through as JSON text, parsed by the caller's `read`: `bytes` to keep the text, or the `decode`
of a `msgspec` decoder to keep only a few fields. `fairway.client` handles credentials, contexts,
TLS, rotating token files and credential plug-ins.

    access = load_access("/path/to/kubeconfig", context="hub")    # or the pod's service account
    api = KubeApi(access, SystemClock())

    raw = await api.get(PODS, "web-0", "default")                              # JSON text
    async for page in api.pages(PODS, Selection(labels="app=web"), read=decode_pod):
        for seen in page.items:                                                # head and value
            ...
    async for batch in api.watch(PODS, start=WatchFrom(version=page.version), read=decode_pod):
        for event in batch:              # ADDED, MODIFIED, …; an empty first batch: it is open
            ...
    raw = await api.create(PODS, body, namespace="default", write=Write(manager="fairway-agent"))
    raw = await api.replace(JOBS, body, namespace="default", subresource="status", write=write)
    raw, is_new = await api.patch(JOBS, "a", Patch(type="apply", body=body, force=True),
                                  namespace="default", write=write)
    raw, is_gone = await api.delete(JOBS, "a", namespace="default", how=Deletion(uid=uid))
    served = await api.discovery.of(body)           # which resource an object is; cached
    as_tenant = api.acting_as("system:serviceaccount:team:default")
    async for chunk in api.stream(path_of(PODS, "web-0", "default", "log"), {"follow": "true"}):
        ...
    async with api.websocket(path, {"command": "ls"}, protocols=("v5.channel.k8s.io",)) as socket:
        ...
    await api.close()

An `Informer` follows one kind until cancelled: it lists in pages, watches with bookmarks, resumes
a broken watch where it stopped, relists when its version has expired, backs off after failures
(with jitter), and keeps only what `read` returns for each object. It has the shape of
`fairway.store.mirrors.Mirror`.

    pods = Informer(api, PODS, read=decode_pod, clock=clock)
    pods.followers.append(lambda name, pod: ...)    # pod is None once it is gone
    task = asyncio.create_task(pods.run()); await pods.is_complete.wait()

Every failure is an `ApiError`: a refusal is of the class of its reason, a server that cannot be
reached is `Unreachable` (a subclass of Unavailable), unusable credentials are Unauthorized. After
429, or a 5xx with Retry-After, every verb is retried; after a broken connection or another 5xx,
only idempotent requests (reads, replacements, deletions, applies).

Names come from the store's interface: ResourceKey, Selection, WatchFrom, Write, Patch, Deletion.
"""

from fairway.client.access import Access
from fairway.client.kubeconfig import access_of, from_service_account, load_access, read
from fairway.kubeapi.api import KubeApi, Limits
from fairway.kubeapi.errors import Unreachable
from fairway.kubeapi.informers import Informer
from fairway.kubeapi.parse import Head, ListPage, Parsed, SeenEvent
from fairway.kubeapi.paths import path_of

__all__ = [
    "Access",
    "Head",
    "Informer",
    "KubeApi",
    "Limits",
    "ListPage",
    "Parsed",
    "SeenEvent",
    "Unreachable",
    "access_of",
    "from_service_account",
    "load_access",
    "path_of",
    "read",
]
