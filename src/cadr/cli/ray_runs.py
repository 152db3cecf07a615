"""Bring several runs to their end in a Ray cluster: a task each, which continues from its folder if it is lost."""

from __future__ import annotations

import signal
from collections.abc import Sequence

import torch

from cadr.cli.runs import Job, Result, complain, quietly, scores
from cadr.cli.terminal import stopping_politely
from cadr.errors import costs_a_sentence
from cadr.training.plan import Opened
from cadr.utils.ray_cluster import cluster, run_tasks

Answer = tuple[Result, list[str]]


def finish_in_ray(jobs: Sequence[Job], gpus: float) -> list[Result]:
    """The results in the order of the jobs; the folders must be where every machine of the cluster finds them."""
    results: dict[int, Result] = {}
    with stopping_politely(), cluster(gpus) as ray:
        for index, answer in run_tasks(ray, _train, jobs, gpus, polite=True):
            if isinstance(answer, Exception):
                raise answer
            results[index], warnings = answer
            for message in warnings:
                complain(message)
            print(f"{len(results)}/{len(jobs)} {jobs[index].out.name}: {scores(results[index])}", flush=True)
    return [results[index] for index in range(len(jobs))]


def _train(job: Job) -> Answer | Exception:
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as Ray says that a task is no longer wanted
    warnings: list[str] = []
    try:
        return quietly(job, Opened(), warnings.append), warnings
    except Exception as error:
        if not costs_a_sentence(error):
            raise
        return error
