"""Small manifests, complete enough for the server to take."""

from __future__ import annotations

GADGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.test}
spec:
  group: example.test
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, shortNames: [gd]}
  versions:
    - name: v1
      served: true
      storage: true
      subresources:
        status: {}
        scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}
      additionalPrinterColumns:
        - {name: Size, type: integer, jsonPath: .spec.size}
        - {name: Phase, type: string, jsonPath: .status.phase}
        - {name: Colour, type: string, jsonPath: .spec.colour, priority: 1}
      schema:
        openAPIV3Schema:
          type: object
          description: A thing that is there for tests.
          properties:
            spec:
              type: object
              description: What is wanted.
              required: [size]
              properties:
                size: {type: integer, minimum: 1, description: How large it is to be.}
                colour: {type: string, enum: [red, green], description: How it looks.}
            status:
              type: object
              properties:
                size: {type: integer}
                phase: {type: string}
                conditions:
                  type: array
                  items: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""


def gadget(name: str, size: int = 1, colour: str = "red") -> str:
    return f"""
apiVersion: example.test/v1
kind: Gadget
metadata:
  name: {name}
  labels: {{colour: {colour}}}
spec: {{size: {size}, colour: {colour}}}
"""


def config_map(name: str, value: str = "1") -> str:
    return f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}}}
data: {{key: "{value}"}}
"""


# This machine as a cluster with four slots for GPUs, and a queue that owns them.
MACHINE = """
apiVersion: fairway.dev/v1alpha1
kind: Cluster
metadata: {name: here}
spec:
  local: {capacity: {cpu: "8", memory: 8Gi, nvidia.com/gpu: 4}, stopSeconds: 1}
---
apiVersion: fairway.dev/v1alpha1
kind: Flavor
metadata: {name: any}
spec: {}
---
apiVersion: fairway.dev/v1alpha1
kind: Queue
metadata: {name: research}
spec:
  uncovered: Unlimited
  resourceGroups:
    - resources: [nvidia.com/gpu]
      flavors: [{name: any, quotas: [{resource: nvidia.com/gpu, nominal: 4}]}]
    - resources: [cpu]
      flavors: [{name: any-processor, quotas: [{resource: cpu, nominal: 8}]}]
---
apiVersion: fairway.dev/v1alpha1
kind: Flavor
metadata: {name: any-processor}
spec: {}
---
apiVersion: fairway.dev/v1alpha1
kind: Queue
metadata: {name: spare}
spec: {uncovered: Unlimited}
"""


def job(name: str, script: str, *, pods: int = 1) -> str:
    """A Job of a shell script, one GPU for each pod."""
    return f"""
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}}}
spec:
  completions: {pods}
  parallelism: {pods}
  completionMode: Indexed
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: main
          image: busybox
          command: [sh, -c, "{script}"]
          resources: {{requests: {{cpu: 100m}}, limits: {{nvidia.com/gpu: 1}}}}
"""
