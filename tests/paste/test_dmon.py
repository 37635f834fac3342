"""`nvidia-smi dmon` and `pmon` in a paste."""

from __future__ import annotations

from dsdoctor import packs
from dsdoctor.judge import judge
from dsdoctor.model.finding import Status
from dsdoctor.paste.environment import environment_of
from dsdoctor.paste.words import may_state
from tests.paste import texts
from tests.paste.reading import value

REGISTRY = packs.load()
DMON = """\
# gpu   pwr  temp    sm   mem   enc   dec  mclk  pclk pviol tviol    fb  bar1 sbecc dbecc   pci
# Idx     W     C     %     %     %     %   MHz   MHz     %  bool    MB    MB  errs  errs  errs
    0   111    83    25     7     0     0  4513  1683     0     0 11651     2     -     -     0
    1   111    84    18     5     0     0  4513  1733     0     0 11653     2     0     3     0
    1   111    84    18     5     0     0  4513  1733     0     0 11653     2     0     4     7
"""
PMON = """\
# gpu         pid   type     sm    mem    enc    dec    jpg    ofa    command
# Idx           #    C/G      %      %      %      %      %      %    name
    0       4711     C     98      7      -      -      -      -    python
    1          -     -      -      -      -      -      -      -    -
"""


def test_the_errors_of_each_gpu_are_those_of_its_last_line() -> None:
    snapshot = environment_of(DMON)
    assert snapshot is not None
    assert may_state(DMON)
    gpus = value(snapshot, "gpus/gpus")
    assert [gpu["index"] for gpu in gpus] == [0, 1]
    assert gpus[0].get("health") is None  # not counted, which is not 0
    assert gpus[0]["pcie"] == {"replay_counter": 0}
    assert gpus[1]["health"] == {"ecc_aggregate_corrected": 0, "ecc_aggregate_uncorrected": 4}
    assert gpus[1]["pcie"] == {"replay_counter": 7}


def test_processes_and_what_is_in_use_are_not_read() -> None:
    snapshot = environment_of(PMON)
    assert snapshot is not None
    assert value(snapshot, "gpus/gpus") == [{"index": 0}, {"index": 1}]


def test_lines_that_end_the_list_are_not_rows() -> None:
    snapshot = environment_of(DMON + "\n    2 GPUs are 100 percent busy, 3 4 5 6 7 8 9 10 11 12\n")
    assert snapshot is not None
    assert len(value(snapshot, "gpus/gpus")) == 2


def test_a_running_job_is_no_problem() -> None:
    snapshot = environment_of(DMON + PMON + texts.LIST_AND_LINKS)
    assert snapshot is not None
    report = judge(snapshot, list(REGISTRY), REGISTRY)
    assert [f for f in report.findings if f.status in (Status.WARN, Status.FAIL)] == []
