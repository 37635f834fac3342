"""What only some releases of accelerate know, and what fp8 asks for."""

from __future__ import annotations

from typing import Any

import accelerate
import pytest
from accelerate.commands.config.config_args import ClusterConfig, SageMakerConfig
from accelerate.utils import DistributedType, DynamoBackend

from dsdoctor.probes import accelerate_releases as releases
from dsdoctor.probes.accelerate_fp8 import without_fp8
from dsdoctor.probes.accelerate_keys import too_few_ranks
from dsdoctor.probes.accelerate_values import rejected_value

BASE: dict[str, Any] = {"distributed_type": "MULTI_GPU", "num_machines": 1, "num_processes": 2}
DEEPSPEED = {**BASE, "distributed_type": "DEEPSPEED"}
ALONE = {**BASE, "distributed_type": "NO", "num_machines": 2}


@pytest.mark.skipif(
    releases.minor(accelerate.__version__) != releases.NEWEST, reason="the tables know another one"
)
def test_the_installed_release_has_what_the_tables_say() -> None:
    fields = {*ClusterConfig.__dataclass_fields__, *SageMakerConfig.__dataclass_fields__}
    for table, known in (
        (releases._KEYS, fields),
        (releases._TYPES, set(DistributedType.__members__)),
        (releases._BACKENDS, set(DynamoBackend.__members__)),
    ):
        for name, span in table.items():
            assert (span.last == releases.NEWEST) == (name in known), name


@pytest.mark.parametrize(
    ("values", "release", "said"),
    [
        pytest.param({**BASE, "ipex_config": {}}, "1.13.0", "only 1.12 and older", id="a key gone"),
        pytest.param({**BASE, "ipex_config": {}}, "1.12.0", "", id="a key that still was"),
        pytest.param({**BASE, "ipex_config": {}}, None, "", id="no release"),
        pytest.param({**BASE, "tp_config": {}}, "1.7.0", "only 1.6 and older", id="a short life"),
        pytest.param(
            {**BASE, "parallelism_config": {}}, "1.9.0", "1.10 and newer have it", id="a later key"
        ),
        pytest.param({**BASE, "fp8_config": {}}, "1.16.0", "", id="a release that is not known"),
        pytest.param({**BASE, "own": 1}, "1.16.0", "", id="a key of a release not known"),
        pytest.param({**BASE, "distributed_type": "TPU"}, "1.0.1", "`TPU`", id="a type gone"),
        pytest.param(
            {**BASE, "dynamo_config": {"dynamo_backend": "nvfuser"}}, "0.34.2", "`nvfuser`",
            id="a compiler gone",
        ),
        pytest.param(
            {**DEEPSPEED, "dynamo_backend": "IPEX"}, "1.15.0", "", id="a compiler nobody reads"
        ),
        pytest.param(
            {**DEEPSPEED, "deepspeed_config": {"gradient_clipping": "auto"}}, "0.29.0",
            "only accelerate 0.30", id="auto too early",
        ),
        pytest.param(
            {**DEEPSPEED, "deepspeed_config": {"gradient_clipping": "auto"}}, "0.30.0", "",
            id="auto",
        ),
        pytest.param(ALONE, "1.8.0", "`main_process_ip` is missing", id="an address"),
        pytest.param(ALONE, None, "missing (accelerate 1.8 and newer)", id="an address, no release"),
        pytest.param(ALONE, "1.7.0", "", id="an address that nobody asked for"),
        pytest.param(
            {**ALONE, "main_process_ip": "a"}, "1.8.0", "`main_process_port` is", id="a port"
        ),
        pytest.param({**BASE, "main_process_port": "1"}, None, "without quotes", id="text"),
        pytest.param({**BASE, "mixed_precision": False}, "0.33.0", "", id="no, as it was read"),
        pytest.param(
            {**BASE, "mixed_precision": False}, None, "(accelerate 0.34 and newer)", id="no"
        ),
        pytest.param({**BASE, "machine_rank": "x"}, None, "", id="a rank that nobody reads"),
        pytest.param(
            {**BASE, "compute_environment": None}, None, "is null; expected", id="no environment"
        ),
        pytest.param({**ALONE, "use_cpu": None}, "1.7.0", "`use_cpu` is `null`", id="a null"),
        pytest.param(
            {**BASE, "mixed_precision": "fp8", "fp8_config": {"backend": "TF"}}, None,
            "`backend` is `TF`", id="a backend",
        ),
        pytest.param(
            {**BASE, "mixed_precision": "bf16", "fp8_config": {"backend": "TF"}}, None, "",
            id="a backend without fp8",
        ),
    ],
)  # fmt: skip
def test_a_value_is_judged_for_its_release(
    values: dict[str, Any], release: str | None, said: str
) -> None:
    found = rejected_value(values, {}, release=release)
    assert said in found.said if found and said else (found is None) == (not said)


def test_what_newer_releases_drop_is_said_without_a_release() -> None:
    sentences = releases.ended({**BASE, "ipex_config": {}, "distributed_type": "TPU"}, {})
    assert sentences == {
        "ipex_config": "accelerate 1.13 and newer stop at the key `ipex_config`",
        "distributed_type": "accelerate 0.28 and newer stop at the `distributed_type` `TPU`",
    }


@pytest.mark.parametrize(
    ("section", "packages", "release", "said"),
    [
        pytest.param({}, {"torch"}, "1.15.0", "nor torchao is installed", id="nothing"),
        pytest.param({}, {"torchao"}, "1.3.0", "Engine is not installed", id="torchao too early"),
        pytest.param({"backend": "TE"}, {"torchao"}, "1.15.0", "but Transformer", id="another"),
        pytest.param({"backend": "TE"}, {"torchao"}, "1.6.0", "", id="a backend nobody reads"),
        pytest.param({"backend": "ao"}, {"torchao"}, "1.9.0", "upper case only", id="lower case"),
        pytest.param({"backend": "AO"}, {"torchao"}, "1.9.0", "", id="upper case"),
        pytest.param({}, {"torch"}, None, "", id="no accelerate"),
    ],
)
def test_fp8_needs_the_package_of_its_backend(
    section: dict[str, Any], packages: set[str], release: str | None, said: str
) -> None:
    values = {**BASE, "mixed_precision": "fp8", "fp8_config": section}
    found = without_fp8(values, {}, packages, release)
    assert said in found.said if found and said else (found is None) == (not said)


def test_one_rank_of_two_machines_is_no_fault_without_torchrun() -> None:
    few = {**BASE, "num_machines": 2, "num_processes": 1}
    assert too_few_ranks(few, {}) == (1, 2)
    assert too_few_ranks({**few, "distributed_type": "NO"}, {}) is None
    assert too_few_ranks({**few, "distributed_type": "NO"}, {"multi_gpu": ""}) == (1, 2)
