"""Many nodes: collect through an existing engine, merge, show what differs.

`bundle` creates the file that runs on each node. `fanout` runs it through ClusterShell, srun or
pdsh. `frames` and `replay` turn the output into snapshots. `nodes` judges each node;
`verdict_cache` and `reads` let equal nodes share judgments. `traits`, `merge` and `cross` are pure.
`pairing` plans the pairs of `fleet smoke`.
"""
