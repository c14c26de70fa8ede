"""Pods as processes on this machine.

Each pod has a supervisor, a small separate process that outlives the hub: it starts the pod's
containers, restarts them by the pod's policy, keeps their output and records their state. The
driver writes a pod's plan into a folder, starts the supervisor, and then only reads, except to end
the pod. A hub that is killed loses nothing: the next hub reads the folders.

    folder/                 mode 0700
      lock                  held by the driver; a second driver is refused
      wake                  a pipe on which supervisors report which pod changed
      works/WORK/
        work.json           what was applied, and whether it is being stopped
        pods/ATTEMPT/NUMBER/POD/
          plan.json         what the supervisor is to do
          lock              held by the supervisor while it lives
          state.json        the state of the pod, written by the supervisor
          stop.json         how the pod is to end, if it is to end
          shared/checkpoint touched by the program when it has saved its work
          logs/             output by container, framed with the time, at most two files per run
          volumes/, home/, tmp/  gone when the pod has ended

At most one supervisor ever runs a plan: it holds the lock, and refuses a plan that has a state.

Of all this, a pod sees its volumes, its home, its tmp and what it shares (see `isolation`), where
the machine can isolate pods; supervisors run outside.

`driver` is what an agent calls and what receives changes, `pod_keeper` decides which pods start,
wait and end, `plans` resolves a pod (with `environment`, `volumes` and `hosts`), `commands` runs
commands beside it, `machine` and `slots` are the capacity (with `gpus`), `works` and `pods` are
what is on disk, `observation` and `logs` what is reported of it, and `supervisor/` is the process
beside each pod.

Differences from a real node: images are not pulled (commands run from the machine itself), limits
are accounted for and not enforced, mount paths in commands and environment are rewritten to
folders, and all pods share 127.0.0.1 (see `hosts`).
"""
