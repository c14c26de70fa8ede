"""Pods as processes on this machine.

Each pod has a supervisor, a small process of its own that outlives the hub: it starts the pod's
containers, restarts them as the pod's policy says, keeps their output and writes down what becomes
of them. The driver writes a pod's plan into a folder, starts the supervisor, and from then on only
reads. A hub that is killed loses nothing: the next one reads the folders.

    folder/                 mode 0700
      lock                  held by the driver; a second one is refused
      wake                  a pipe on which supervisors say which pod changed
      works/WORK/
        work.json           what was applied, and whether it is being stopped
        pods/ATTEMPT/NUMBER/POD/
          plan.json         what the supervisor is to do
          lock              held by the supervisor while it lives
          state.json        what is so, by the supervisor
          stop.json         how the pod is to end, once it is to
          checkpoint        touched by the program when it has saved its work
          logs/             output by container, framed with the time, at most two files a run
          volumes/, home/   gone when the pod has ended

At most one supervisor ever runs a plan: it holds the lock, and refuses a plan that has a state.

`driver` is what an agent calls and what hears of changes, `pod_keeper` decides which pods start,
wait and end, `plans` resolves a pod (with `environment`, `volumes` and `hosts`), `machine` and
`slots` are the room there is (with `gpus`), `works` and `pods` are what is on disk, `observation`
and `logs` what is told of it, and `supervisor/` is the process beside each pod.

What a machine is not: images are not pulled (commands run from the machine itself), limits are
accounted for and not enforced, mount paths are folders whose names are rewritten in commands and
environment, and all pods share 127.0.0.1 (see `hosts`).
"""
