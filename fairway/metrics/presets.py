"""Queries for metrics by which model servers report their load.

One table: for each server and signal, PromQL with `@` where the labels of the service's own
series go. A signal is either a total, of which each replica takes a share, or a level to be kept,
whatever the number of replicas. Signals that a server does not export are not in the table.

    QueueLength         waiting requests, in total
    TokensPerSecond     tokens generated per second, in total
    KVCacheUse          share of the key-value cache that is in use, from 0 to 1
    TimeToFirstToken    seconds until 95 of 100 requests have their first token

TGI does not export the time to the first token; its queue time and the time of its first pass are
added up. Triton's own histogram of first responses must be switched on
(`--metrics-config histogram_latencies=true`); its other numbers are those of the TensorRT-LLM
backend.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Engine = Literal["vLLM", "SGLang", "TGI", "Triton"]
Signal = Literal["QueueLength", "TokensPerSecond", "KVCacheUse", "TimeToFirstToken"]

TOTALS: frozenset[Signal] = frozenset({"QueueLength", "TokensPerSecond"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """What one model server exports."""

    model_label: str  # the label that names the model; empty: it has none
    queries: Mapping[Signal, str]


_PLACE = "@"  # where the labels go; no metric that is asked for has it in its name


def _first_token(metric: str, more: str = "") -> str:
    """The quantile of a histogram; zero without requests, and no sample without the histogram."""
    labels = f"{{{_PLACE}{more}}}"
    quantile = f"histogram_quantile(0.95, sum by (le) (rate({metric}_bucket{labels}[1m])))"
    return f"(({quantile}) > 0 or 0 * sum(rate({metric}_count{labels}[1m])))"


SERVERS: Mapping[Engine, Server] = {
    "vLLM": Server(
        model_label="model_name",
        queries={
            "QueueLength": "sum(vllm:num_requests_waiting{@})",
            "TokensPerSecond": "sum(rate(vllm:generation_tokens_total{@}[1m]))",
            # vLLM's first engine used the second name.
            "KVCacheUse": "avg(vllm:kv_cache_usage_perc{@} or vllm:gpu_cache_usage_perc{@})",
            "TimeToFirstToken": _first_token("vllm:time_to_first_token_seconds"),
        },
    ),
    "SGLang": Server(
        model_label="model_name",
        queries={
            "QueueLength": "sum(sglang:num_queue_reqs{@})",
            "TokensPerSecond": "sum(rate(sglang:generation_tokens_total{@}[1m]))",
            "KVCacheUse": "avg(sglang:token_usage{@})",
            "TimeToFirstToken": _first_token("sglang:time_to_first_token_seconds"),
        },
    ),
    "TGI": Server(
        model_label="",
        queries={
            "QueueLength": "sum(tgi_queue_size{@})",
            "TokensPerSecond": "sum(rate(tgi_request_generated_tokens_sum{@}[1m]))",
            "TimeToFirstToken": _first_token("tgi_request_queue_duration")
            + " + "
            + _first_token("tgi_batch_inference_duration", more=',method="prefill"'),
        },
    ),
    "Triton": Server(
        model_label="model",
        queries={
            "QueueLength": 'sum(nv_trt_llm_request_metrics{@,request_type="waiting"})',
            "TokensPerSecond": "sum(rate(nv_llm_output_token_len_sum{@}[1m]))",
            "KVCacheUse": "avg(nv_trt_llm_kv_cache_block_metrics"
            '{@,kv_cache_block_type="fraction"})',
            "TimeToFirstToken": _first_token("nv_inference_first_response_histogram_ms")
            + " / 1000",
        },
    ),
}


def query(engine: Engine, signal: Signal, labels: str) -> str | None:
    """The query for a signal of the series with these labels; None if it is not exported."""
    known = SERVERS[engine].queries.get(signal)
    return None if known is None else known.replace(_PLACE, labels)


def match_labels(labels: Mapping[str, str]) -> str:
    """Labels as PromQL matchers, by value."""
    return ",".join(f"{name}={quote(labels[name])}" for name in sorted(labels))


def quote(text: str) -> str:
    """Text as a PromQL string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
