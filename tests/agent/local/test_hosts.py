"""Names of hosts where all pods are on one machine."""

from __future__ import annotations

import socket

import pytest

from fairway.agent.drivers.local.hosts import Hosts, Mention, free_ports
from fairway.kinds.interface import Pod

PORTS = {
    Mention(pod="train-0", port=29500): 20000,
    Mention(pod="train-1", port=2222): 20001,
    Mention(pod="train-1", port=8080): 20002,
}
SERVICE = {
    "kind": "Service",
    "metadata": {"name": "api"},
    "spec": {"selector": {"role": "server"}, "ports": [{"port": 80, "targetPort": 8080}]},
}


def pods(*containers: dict) -> list[Pod]:
    """Pods train-0, train-1 and so on; at least twelve, the second of which serves."""
    given = [*containers, *({} for _ in range(12 - len(containers)))]
    return [
        Pod(
            name=f"train-{index}",
            pod_set="pod",
            index=index,
            spec={"subdomain": "train", "containers": [value]},
            labels={"role": "server"} if index == 1 else {},
        )
        for index, value in enumerate(given)
    ]


def hosts(*containers: dict) -> Hosts:
    return Hosts(pods(*containers), [SERVICE], "team")


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("train-0.train:29500", "127.0.0.1:20000"),
        ("train-0.train.team.svc.cluster.local:29500", "127.0.0.1:20000"),
        ("tcp://train-0:29500/x", "tcp://127.0.0.1:20000/x"),
        ("--master=train-0", "--master=127.0.0.1"),
        ("--hosts=train-0,train-1,train-11", "--hosts=127.0.0.1,127.0.0.1,127.0.0.1"),
        ("torchrun --master-addr train-0 main.py", "torchrun --master-addr 127.0.0.1 main.py"),
        ('{"worker": ["train-1.team.svc:2222"]}', '{"worker": ["127.0.0.1:20001"]}'),
        ("http://api/v1", "http://127.0.0.1/v1"),
        ("http://api:80/v1", "http://127.0.0.1:20002/v1"),
        ("train-10.train:29500", "127.0.0.1:29500"),
        ("train-0.log", "train-0.log"),
        ("/data/train-0/model", "/data/train-0/model"),
        ("train-0/model", "train-0/model"),
        ("--name=train-0", "--name=train-0"),
        ("retrain-0:29500", "retrain-0:29500"),
        ("train-0-old:29500", "train-0-old:29500"),
        ("elsewhere:29500", "elsewhere:29500"),
    ],
)
def test_names_of_hosts_in_commands_become_this_machine(word: str, expected: str) -> None:
    assert hosts().rewritten_words([word], PORTS) == [expected]


def test_a_bare_name_behind_a_flag_that_names_a_host_is_a_host() -> None:
    words = ["run", "--coordinator", "train-0", "--name", "train-0"]
    assert hosts().rewritten_words(words, {}) == [
        *("run", "--coordinator", "127.0.0.1", "--name", "train-0")
    ]


def test_addresses_in_the_environment_become_this_machine_and_names_stay() -> None:
    variables = [
        {"name": "MASTER_ADDR", "value": "train-0.train"},
        {"name": "MASTER_PORT", "value": "29500"},
        {"name": "POD_NAME", "value": "train-0"},
        {"name": "HOSTNAME", "value": "train-0"},
        {"name": "OTHER_PORT", "value": "29500"},
        {"name": "FROM", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ]
    made = hosts().rewritten_environment("train-3", variables, PORTS)
    assert [item.get("value") for item in made] == [
        *("127.0.0.1", "20000", "train-0", "train-0", "29500", None)
    ]


def test_only_ports_that_their_own_pod_reads_are_replaced() -> None:
    pair = {
        "env": [
            {"name": "MASTER_ADDR", "value": "train-0"},
            {"name": "MASTER_PORT", "value": "29500"},
        ]
    }
    server = {**pair, "command": ["serve", "--port=8080"]}
    client = {**pair, "args": ["--from=http://train-1:8080", "--listen=train-2.train:2222"]}
    found = hosts(pair, server, client).own_ports()
    assert found == [Mention(pod="train-0", port=29500), Mention(pod="train-2", port=2222)]


def test_an_address_of_its_own_is_the_pods_own() -> None:
    own = {
        "env": [
            {"name": "MASTER_ADDR", "value": "localhost"},
            {"name": "MASTER_PORT", "value": "29500"},
        ]
    }
    assert hosts(own).own_ports() == [Mention(pod="train-0", port=29500)]


def test_ports_that_are_taken_are_not_given() -> None:
    with socket.socket() as listener:
        listener.bind(("", 0))
        listener.listen()
        taken = listener.getsockname()[1]
        within = range(taken, taken + 1)
        assert free_ports(1, (), within) == []
    assert free_ports(2, (20001,), range(20000, 20100))[0] != 20001
