"""The story: what is submitted when, when a service grows, and when a region is lost and returns.

Times are seconds from the beginning of a round. A round leaves behind only what never ends:
finished workloads are removed after a while (`finishedSeconds` of the fleet), and names include the
number of their round.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairway.api.meta import JsonObject

ROUND_SECONDS = 150.0
_API = "fairway.dev/v1alpha1"
_GPU = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A workload that a team submits and that ends by itself."""

    name: str
    team: str
    gpus: int  # per pod
    flavors: tuple[str, ...]
    seconds: int
    pods: int = 1
    priority: int = 0
    is_together: bool = False  # in one rack
    tasks: int = 0  # if positive: a sweep, of which `pods` run at a time
    checkpoint_seconds: int = 0
    policy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of the story."""

    at: float
    submit: Job | None = None
    replicas: int | None = None  # what the service is scaled to
    updates: bool = False  # a new version of the service rolls out
    down: str = ""  # a cluster that is lost
    up: str = ""  # a cluster that comes back
    runs_here: bool = False  # a real process on this machine
    says: str = ""  # {number} is that of the round


H100 = ("h100",)


def _small(name: str, team: str) -> Job:
    return Job(name=name, team=team, gpus=8, flavors=H100, seconds=15, checkpoint_seconds=5)


STORY: tuple[Step, ...] = (
    Step(at=1, replicas=6, says="serving keeps a model online with six replicas"),
    Step(
        at=3,
        says="research fills idle H100s with a sweep; product starts to tune",
        submit=Job(
            name="sweep",
            team="research",
            pods=16,
            gpus=1,
            flavors=H100,
            seconds=9,
            tasks=48,
            policy="home-only",
        ),
    ),
    Step(
        at=5,
        submit=Job(
            name="finetune",
            team="product",
            pods=2,
            gpus=8,
            flavors=H100,
            seconds=40,
            priority=50,
            checkpoint_seconds=10,
        ),
    ),
    Step(
        at=8,
        runs_here=True,
        says="a real process runs on this machine: fairway logs -f hello-{number}",
    ),
    Step(
        at=14,
        says="the site is full, and research has something urgent that needs a whole rack",
        submit=Job(
            name="train-large",
            team="research",
            pods=2,
            gpus=8,
            flavors=H100,
            seconds=40,
            priority=100,
            is_together=True,
            checkpoint_seconds=20,
        ),
    ),
    Step(
        at=20,
        says="more than the site can hold: it overflows into the cloud",
        submit=Job(
            name="ablation",
            team="product",
            gpus=8,
            flavors=H100,
            seconds=50,
            checkpoint_seconds=10,
        ),
    ),
    Step(
        at=21,
        submit=Job(
            name="reproduce",
            team="research",
            gpus=8,
            flavors=H100,
            seconds=50,
            checkpoint_seconds=10,
        ),
    ),
    Step(
        at=24,
        says="both teams want more than they own: the smaller share for its weight goes first",
        submit=_small("distill", "product"),
    ),
    Step(at=25, submit=_small("evaluate", "research")),
    Step(at=26, submit=_small("quantize", "product")),
    Step(at=27, submit=_small("analyze", "research")),
    Step(
        at=32,
        replicas=28,
        says="traffic rises: the service grows beyond the site, into the clouds",
    ),
    Step(
        at=36,
        updates=True,
        says="a new version of the model rolls out: the smallest place first, then group by group",
    ),
    Step(at=62, down="cloud-east", says="the region cloud-east goes down"),
    Step(at=96, replicas=6, says="traffic falls: the service comes home"),
    Step(at=104, up="cloud-east", says="cloud-east comes back"),
)


def workload(job: Job, number: int) -> JsonObject:
    """A job as a user would write it."""
    name = f"{job.name}-{number}"
    spec: JsonObject = {
        "queue": job.team,
        "priority": job.priority,
        "flavors": list(job.flavors),
        "runSeconds": {"estimate": job.seconds},
        "template": {"manifests": [_job(job)]},
    }
    if job.policy:
        spec["policy"] = job.policy
    if job.checkpoint_seconds:
        spec["checkpoint"] = {
            "intervalSeconds": job.checkpoint_seconds,
            "signal": "",
            "graceSeconds": 3,
        }
    if job.tasks:
        spec |= {
            "mode": "Independent",
            "tasks": {"count": job.tasks, "concurrency": job.pods, "retries": 1},
        }
    if job.is_together:
        spec["gang"] = {"domain": "rack"}
    return _workload(name, f"team-{job.team}", spec)


def service(replicas: int, *, version: int = 1) -> JsonObject:
    """A served model: first at home, then wherever there is room."""
    spec: JsonObject = {
        "queue": "serving",
        "priority": 1000,
        "mode": "Divided",
        "replicas": replicas,
        "flavors": ["a100", "l40s"],
        "onClusterLost": "AllowDuplicate",
        "template": {
            "manifests": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "metadata": {"name": "assistant"},
                    "spec": {
                        "selector": {"matchLabels": {"app": "assistant"}},
                        "template": {
                            "metadata": {"labels": {"app": "assistant"}},
                            "spec": {
                                "containers": [_container(gpus=1, image=f"serving:{version}")]
                            },
                        },
                    },
                }
            ]
        },
    }
    return _workload("assistant", "team-serving", spec)


def rollout() -> JsonObject:
    """Rolls out its new versions: a few replicas first, then one group after another."""
    strategy = {"canary": {"percent": 10}, "byGroup": True, "soakSeconds": 1}
    return {
        "apiVersion": "serving.fairway.dev/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "assistant", "namespace": "team-serving"},
        "spec": {"workload": {"name": "assistant"}, "strategy": strategy},
    }


_SCRIPT = """
echo "loading on $(hostname), process $$"
step=1
while [ $step -le 40 ]; do
  echo "step $step of 40, loss 0.$((9500 / (step + 10)))"
  step=$((step + 1))
  sleep 1
done
echo done
"""


def process(number: int) -> JsonObject:
    """A real program on this machine."""
    container = {
        "name": "main",
        "image": "none",
        "command": ["/bin/sh", "-c", _SCRIPT],
        "resources": {"requests": {"cpu": "100m", "memory": "16Mi"}},
    }
    manifest: JsonObject = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "hello"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }
    spec: JsonObject = {
        "queue": "playground",
        "policy": "this-machine",
        "template": {"manifests": [manifest]},
    }
    return _workload(f"hello-{number}", "default", spec, part="process")


def _workload(name: str, namespace: str, spec: JsonObject, *, part: str = "story") -> JsonObject:
    return {
        "apiVersion": _API,
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "finalizers": ["fairway.dev/works"],
            "labels": {"fairway.dev/demo": part},
        },
        "spec": spec,
    }


def _job(job: Job) -> JsonObject:
    spec: JsonObject = {
        "backoffLimit": 0,
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [_container(gpus=job.gpus, image="training")],
            }
        },
    }
    if not job.tasks:
        spec |= {"parallelism": job.pods, "completions": job.pods, "completionMode": "Indexed"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": job.name},
        "spec": spec,
    }


def _container(*, gpus: int, image: str) -> JsonObject:
    limits = {"cpu": str(4 * gpus), "memory": f"{32 * gpus}Gi", _GPU: gpus}
    return {"name": "main", "image": image, "resources": {"limits": limits}}
