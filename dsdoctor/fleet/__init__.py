"""Many nodes: collect through an existing engine, merge, show what differs.

`bundle` makes the one file that runs on a node; `fanout` has ClusterShell, srun or pdsh run it;
`frames` and `replay` turn what comes back into snapshots; `nodes` judges each, by way of `memory`
and `reads` only where it differs from others; `traits`, `merge` and `cross` are pure; `pairs` plans
the pairs of `fleet smoke`.
"""
