"""Volumes as folders; mount paths are rewritten to these folders.

Nothing is mounted at the mount paths, since not every machine can isolate processes. A mount path
in a command, an argument, a variable or the working directory is replaced by the folder;
`FAIRWAY_VOLUME_NAME` also holds the folder of each volume.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from fairway.agent.drivers.local.environment import PodFault, Surroundings, contents, pod_field
from fairway.api.meta import JsonObject
from fairway.kinds.plain import child, maps_at, text
from fairway.kinds.rules.pods import FILES_ANNOTATION

_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_GIVEN = "fairway-files"
Rewrite = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumePlan:
    """A folder of the machine, or a folder to make with these files."""

    name: str
    folder: Path
    files: Mapping[str, bytes]
    is_made: bool  # false for a folder of the host
    mounted_at: Mapping[str, str] = field(default_factory=dict)  # in every container: path -> file


def plan_volumes(
    around: Surroundings,
    folder: Path,
    host_roots: Sequence[Path],
    *,
    rewrite: Rewrite = lambda text: text,
) -> list[VolumePlan]:
    """Plans the volumes of a pod; PodFault if one is not possible on this machine."""
    made = []
    for index, volume in enumerate(maps_at(around.pod.spec, "volumes")):
        path = f"spec.volumes[{index}]"
        name = text(volume, "name")
        if not _is_file_name(name):
            raise PodFault(f"{path}.name: {name!r} is not the name of a volume")
        if "hostPath" in volume:
            place = _host_folder(child(volume, "hostPath"), host_roots, f"{path}.hostPath")
            made.append(VolumePlan(name=name, folder=place, files={}, is_made=False))
            continue
        files = {
            key: _rewritten(value, rewrite) for key, value in _files(volume, around, path).items()
        }
        made.append(VolumePlan(name=name, folder=folder / name, files=files, is_made=True))
    made.extend(_given_files(around.pod.annotations, folder, rewrite))
    return made


def _given_files(
    annotations: Mapping[str, str], folder: Path, rewrite: Rewrite
) -> Iterator[VolumePlan]:
    """Files that the controller of the pod's kind would mount, from an annotation of the pod."""
    if FILES_ANNOTATION not in annotations:
        return
    try:
        given = msgspec.json.decode(annotations[FILES_ANNOTATION], type=dict[str, str])
    except msgspec.DecodeError as fault:
        raise PodFault(f"metadata.annotations[{FILES_ANNOTATION}]: {fault}") from fault
    names = {path: f"{number}/{Path(path).name}" for number, path in enumerate(sorted(given))}
    for path in given:
        if not path.startswith("/") or not _is_file_name(Path(path).name):
            raise PodFault(f"metadata.annotations[{FILES_ANNOTATION}]: {path!r} names no file")
    yield VolumePlan(
        name=_GIVEN,
        folder=folder / _GIVEN,
        files={names[path]: _rewritten(given[path].encode(), rewrite) for path in given},
        is_made=True,
        mounted_at=names,
    )


def make(plans: Sequence[VolumePlan]) -> None:
    """Makes the folders and their files."""
    for plan in plans:
        if not plan.is_made:
            continue
        plan.folder.mkdir(parents=True, exist_ok=True)
        for name, content in plan.files.items():
            file = plan.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)


class Mounts:
    """The mount paths of one container."""

    def __init__(self, container: JsonObject, plans: Sequence[VolumePlan], path: str) -> None:
        folders = {plan.name: plan.folder for plan in plans}
        self._folder_by_path: dict[str, Path] = {}
        for index, mount in enumerate(maps_at(container, "volumeMounts")):
            place = f"{path}.volumeMounts[{index}]"
            name = text(mount, "name")
            if name not in folders:
                raise PodFault(f"{place}.name: the pod has no volume {name!r}")
            below = text(mount, "subPath")
            if below and not _is_below(below):
                raise PodFault(f"{place}.subPath: {below!r} leaves the volume")
            where = text(mount, "mountPath").rstrip("/")
            if where:
                self._folder_by_path[where] = folders[name] / below if below else folders[name]
        for plan in plans:
            for where, file in plan.mounted_at.items():
                self._folder_by_path.setdefault(where, plan.folder / file)
        paths = sorted(self._folder_by_path, key=lambda name: (-len(name), name))
        self._pattern = (
            re.compile(rf"(?<![\w./-])({'|'.join(map(re.escape, paths))})(?![\w.-])")
            if paths
            else None
        )

    def rewritten(self, value: str) -> str:
        if self._pattern is None:
            return value
        return self._pattern.sub(lambda match: str(self._folder_by_path[match[1]]), value)


def _host_folder(source: JsonObject, roots: Sequence[Path], path: str) -> Path:
    where = Path(text(source, "path")).resolve()
    if not any(where.is_relative_to(root.resolve()) for root in roots):
        raise PodFault(f"{path}: {where} is not below a folder that pods may use on this machine")
    return where


def _files(volume: JsonObject, around: Surroundings, path: str) -> dict[str, bytes]:
    if "emptyDir" in volume or volume.keys() == {"name"}:
        return {}
    if "projected" in volume:
        files: dict[str, bytes] = {}
        for index, source in enumerate(maps_at(volume, "projected", "sources")):
            files.update(_source(source, around, f"{path}.projected.sources[{index}]"))
        return files
    return _source(volume, around, path)


def _source(source: JsonObject, around: Surroundings, path: str) -> dict[str, bytes]:
    if "configMap" in source:
        return _choose(child(source, "configMap"), around.settings, f"{path}.configMap")
    if "secret" in source:
        return _choose(child(source, "secret"), around.secrets, f"{path}.secret")
    if "downwardAPI" in source:
        return dict(_downward(source, around, path))
    kind = next((key for key in source if key != "name"), "")
    raise PodFault(f"{path}: a local cluster has no volumes of type {kind}")


def _choose(source: JsonObject, kept: Mapping[str, JsonObject], path: str) -> dict[str, bytes]:
    name = text(source, "secretName") or text(source, "name")
    if name not in kept:
        if source.get("optional") is True:
            return {}
        raise PodFault(f"{path}: {name!r} is not among what travels with the work")
    held = contents(kept[name])
    items = maps_at(source, "items")
    if not items:
        return {key: held[key] for key in held if _is_file_name(key)}
    result = {}
    for index, item in enumerate(items):
        key, place = text(item, "key"), text(item, "path")
        if key not in held:
            raise PodFault(f"{path}.items[{index}].key: there is no key {key!r} in {name!r}")
        if not _is_below(place):
            raise PodFault(f"{path}.items[{index}].path: {place!r} leaves the volume")
        result[place] = held[key]
    return result


def _downward(source: JsonObject, around: Surroundings, path: str) -> Iterator[tuple[str, bytes]]:
    for index, item in enumerate(maps_at(source, "downwardAPI", "items")):
        place, where = text(item, "path"), f"{path}.downwardAPI.items[{index}]"
        if not _is_below(place):
            raise PodFault(f"{where}.path: {place!r} leaves the volume")
        field = text(item, "fieldRef", "fieldPath")
        if field in ("metadata.labels", "metadata.annotations"):
            held = around.pod.labels if field.endswith("labels") else around.pod.annotations
            value = "\n".join(f'{key}="{held[key]}"' for key in sorted(held))
        else:
            value = pod_field(field, around, f"{where}.fieldRef")
        yield place, value.encode()


def _rewritten(value: bytes, rewrite: Rewrite) -> bytes:
    try:
        return rewrite(value.decode()).encode()
    except UnicodeDecodeError:
        return value


def _is_file_name(name: str) -> bool:
    return bool(_KEY.fullmatch(name)) and name not in (".", "..")


def _is_below(path: str) -> bool:
    """Whether a relative path stays inside."""
    return bool(path) and not path.startswith("/") and ".." not in Path(path).parts
